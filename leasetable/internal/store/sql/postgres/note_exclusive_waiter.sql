-- Announces that a waiter waits for the whole name: no share or permit is granted for the given time. NULL withdraws
-- that.
-- Parameters: $1 name, $2 microseconds (or NULL).
UPDATE sqllock_lock
SET exclusive_waiter_until = clock_timestamp() + $2::bigint::float * interval '1 microsecond'
WHERE name = $1 AND permits IS NOT NULL
