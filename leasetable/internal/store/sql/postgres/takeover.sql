-- Takes a name over from a lease that is known to be over. It withdraws the announcement of the waiter that acquires
-- the name. The row of the lease is looked for again: a replica that lags may have shown the name without it.
-- Parameters: $1 new lease id, $2 name, $3 old lease id, $4 waiter_since of that waiter, $5 metadata.
-- Keeps I6, I8, I9, I12.
UPDATE sqllock_lock
SET token = token + 1, lease_id = $1, acquired_at = clock_timestamp(), released_at = NULL, metadata = $5,
    waiter_until = CASE WHEN waiter_since = $4 THEN NULL ELSE waiter_until END
WHERE name = $2 AND lease_id = $3 AND NOT EXISTS (SELECT FROM sqllock_lease WHERE id = $3)
RETURNING token
