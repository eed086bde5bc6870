UPDATE sqllock_lock
SET exclusive_waiter_until = UTC_TIMESTAMP(6) + INTERVAL ?2 MICROSECOND
WHERE name = UNHEX(?1) AND permits IS NOT NULL
