-- Releases a name as release.sql does, without waiting until the commit is on disk. It sets no minimum hold.
-- Parameters: $1 name, $2 lease id, $3 token.
-- Keeps I6.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = clock_timestamp(), hold_until = NULL
FROM set_config('synchronous_commit', 'off', true)
WHERE name = $1 AND lease_id = $2 AND token = $3
RETURNING coalesce(waiter_until > clock_timestamp(), false)::integer
