-- Releases a name that a lease holds with a token, if no other process waits for it. It sets no minimum hold. It
-- returns no row.
-- Parameters: $1 name, $2 lease id, $3 token.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = clock_timestamp(), hold_until = NULL
WHERE name = $1 AND lease_id = $2 AND token = $3 AND coalesce(waiter_until <= clock_timestamp(), true)
