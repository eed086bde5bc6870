-- The insert id is what is returned elsewhere. token, from which it is computed, is assigned after it: MariaDB assigns from
-- left to right, or all at once with the mode SIMULTANEOUS_ASSIGNMENT.
UPDATE sqllock_lock
SET waiter_until = IF(LAST_INSERT_ID((token + ?5) * 2 + COALESCE(waiter_until > UTC_TIMESTAMP(6), 0)), waiter_until, NULL),
    token = token + ?5, acquired_at = UTC_TIMESTAMP(6), metadata = UNHEX(?1)
WHERE name = UNHEX(?2) AND lease_id = UNHEX(?3) AND token = ?4
