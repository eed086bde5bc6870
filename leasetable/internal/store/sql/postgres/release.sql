-- Releases a name that a lease holds with a token. If the minimum hold is not NULL, the name stays taken until so many
-- microseconds after its acquisition. The row stays, because of its token. It returns 1 if another process waits for
-- the name, and 0 otherwise. It adds 0 for synchronous_commit, which counts at the commit: a row that is joined costs more.
-- Parameters: $1 name, $2 lease id, $3 token, $4 minimum hold in microseconds (or NULL); on PostgreSQL alone $5
-- synchronous_commit (NULL: the setting of the session).
-- Keeps I6, I21, I22, I36.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = clock_timestamp(), hold_until = acquired_at + $4::bigint::float * interval '1 microsecond'
WHERE name = $1 AND lease_id = $2 AND token = $3
RETURNING coalesce(waiter_until > clock_timestamp(), false)::integer
  + (pg_catalog.set_config('synchronous_commit', coalesce($5, pg_catalog.current_setting('synchronous_commit')), true) IS NULL)::integer
