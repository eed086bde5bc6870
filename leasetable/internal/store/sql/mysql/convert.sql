-- The insert id is the token.
UPDATE sqllock_lock
SET token = LAST_INSERT_ID(token + 1), lease_id = UNHEX(?1), permits = NULL, exclusive_waiter_until = NULL,
    acquired_at = UTC_TIMESTAMP(6), released_at = NULL, metadata = UNHEX(?2)
WHERE name = UNHEX(?3) AND token = ?4 AND lease_id IS NULL
