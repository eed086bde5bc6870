-- Has nobody else join those who hold a name together for so many microseconds: somebody waits to hold it alone. Null:
-- nobody does any more. The microseconds, the name.
UPDATE sqllock_lock
SET exclusive_waiter_until = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE name = UNHEX(?) AND permits IS NOT NULL
