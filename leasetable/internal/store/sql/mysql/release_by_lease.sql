UPDATE sqllock_lock
SET lease_id = NULL, released_at = UTC_TIMESTAMP(6), hold_until = acquired_at + INTERVAL ?3 MICROSECOND
WHERE name = UNHEX(?1) AND lease_id = UNHEX(?2)
