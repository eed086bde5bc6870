UPDATE sqllock_lock
SET exclusive_waiter_until = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + ?2
WHERE name = ?1 AND permits IS NOT NULL
