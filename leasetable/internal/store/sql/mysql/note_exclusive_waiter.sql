-- Announces that a waiter waits for the whole name: no share or permit is granted for the given time. NULL withdraws
-- that.
-- Parameters: ?1 name, ?2 microseconds (or NULL).
UPDATE sqllock_lock
SET exclusive_waiter_until = UTC_TIMESTAMP(6) + INTERVAL ?2 MICROSECOND
WHERE name = UNHEX(?1) AND permits IS NOT NULL
