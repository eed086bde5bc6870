-- Announces that a waiter waits for the whole name: no share or permit is granted for the given time. NULL withdraws
-- that.
-- Parameters: ?1 name, ?2 microseconds (or NULL).
UPDATE sqllock_lock
SET exclusive_waiter_until = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + ?2
WHERE name = ?1 AND permits IS NOT NULL
