-- The insert id is what is returned elsewhere.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = UTC_TIMESTAMP(6), hold_until = acquired_at + INTERVAL ?4 MICROSECOND,
    waiter_until = IF(LAST_INSERT_ID(COALESCE(waiter_until > UTC_TIMESTAMP(6), 0)), waiter_until, NULL)
WHERE name = UNHEX(?1) AND lease_id = UNHEX(?2) AND token = ?3
