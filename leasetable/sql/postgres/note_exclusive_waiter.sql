-- Has nobody else join those who hold the name $1 together for the next $2 microseconds: somebody waits to hold it
-- alone. Null: nobody does any more.
UPDATE sqllock_lock
SET exclusive_waiter_until = clock_timestamp() + $2::bigint * interval '1 microsecond'
WHERE name = $1 AND permits IS NOT NULL
