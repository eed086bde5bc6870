-- Releases a name as release.sql does, without waiting until the commit is on disk: the setting counts at the commit. It
-- adds 0 to what is returned, which costs less than a row that is joined. The statement sets no minimum hold.
-- Parameters: $1 name, $2 lease id, $3 token.
-- Keeps I6.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = clock_timestamp(), hold_until = NULL
WHERE name = $1 AND lease_id = $2 AND token = $3
RETURNING coalesce(waiter_until > clock_timestamp(), false)::integer
  + (pg_catalog.set_config('synchronous_commit', 'off', true) IS NULL)::integer
