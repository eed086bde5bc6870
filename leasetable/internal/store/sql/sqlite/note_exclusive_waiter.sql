UPDATE sqllock_lock
SET exclusive_waiter_until = {now} + ?2
WHERE name = ?1 AND permits IS NOT NULL
