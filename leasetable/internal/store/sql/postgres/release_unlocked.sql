-- Releases names as release_many.sql does, and skips rows that other sessions have locked.
-- Parameters: $1 names (array as text), $2 lease id, $3 their tokens (array as text), $4 minimum hold in microseconds
-- (or NULL), $5 synchronous_commit (NULL: the setting of the session).
-- Keeps I6.
WITH held AS (
  SELECT k.name
  FROM sqllock_lock k
  WHERE {named} AND k.lease_id = $2
    AND ((k.name, k.token) IN (SELECT r.name, r.token FROM unnest($1::text::bytea[], $3::text::bigint[]) r (name, token))) IS TRUE
  FOR UPDATE SKIP LOCKED
)
UPDATE sqllock_lock k
SET lease_id = NULL, released_at = clock_timestamp(), hold_until = k.acquired_at + $4::bigint::float * interval '1 microsecond'
FROM pg_catalog.set_config('synchronous_commit', coalesce($5, pg_catalog.current_setting('synchronous_commit')), true)
WHERE k.name = ANY (ARRAY(SELECT held.name FROM held)) AND k.name {bounded}
RETURNING pg_catalog.encode(k.name, 'hex'), k.token,
  coalesce(k.waiter_until > clock_timestamp(), false)::integer AS wanted
