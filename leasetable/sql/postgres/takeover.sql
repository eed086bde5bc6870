-- Takes for the lease $1, and for who was noted to wait since $4, the name $2 from the lease $3, which is known to be over. The metadata is $5.
UPDATE sqllock_lock
SET token = token + 1, lease_id = $1, acquired_at = clock_timestamp(), released_at = NULL, metadata = $5,
    waiter_until = CASE WHEN waiter_since = $4 THEN NULL ELSE waiter_until END
WHERE name = $2 AND lease_id = $3
RETURNING token
