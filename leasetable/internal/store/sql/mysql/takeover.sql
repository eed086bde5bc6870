-- The insert id is the token.
UPDATE sqllock_lock
SET token = LAST_INSERT_ID(token + 1), lease_id = UNHEX(?1), acquired_at = UTC_TIMESTAMP(6), released_at = NULL, metadata = UNHEX(?5),
    waiter_until = IF(waiter_since = ?4, NULL, waiter_until)
WHERE name = UNHEX(?2) AND lease_id = UNHEX(?3) AND NOT EXISTS (SELECT 1 FROM sqllock_lease WHERE id = UNHEX(?3))
