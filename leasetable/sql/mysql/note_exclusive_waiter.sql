-- Announces that a waiter waits for the whole name: no share or permit is granted for the given time. NULL withdraws
-- that.
-- Parameters: microseconds (or NULL), name.
UPDATE sqllock_lock
SET exclusive_waiter_until = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE name = UNHEX(?) AND permits IS NOT NULL
