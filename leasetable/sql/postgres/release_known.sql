-- Releases the name $1 as held by the lease $2 with the token $3 if no other process waits for it, and returns nothing. It is not
-- kept.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = clock_timestamp(), hold_until = NULL
WHERE name = $1 AND lease_id = $2 AND token = $3 AND coalesce(waiter_until <= clock_timestamp(), true)
