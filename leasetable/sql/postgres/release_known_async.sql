-- Releases the name $1 as release_known.sql does, and does not wait for its commit to be on disk.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = clock_timestamp(), hold_until = NULL
FROM set_config('synchronous_commit', 'off', true)
WHERE name = $1 AND lease_id = $2 AND token = $3 AND coalesce(waiter_until <= clock_timestamp(), true)
