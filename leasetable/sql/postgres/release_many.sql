-- Releases the names $1 that are held by the lease $2, each with its token of $3, two arrays as text, and keeps them until $4
-- microseconds after they were acquired, if that is not null. It
-- returns those that it released, and whether another process waits for them, which it wakes. $5 is the
-- synchronous_commit of the release, or null for that of the session. If it would wait for a row for more than 1 ms, nothing is released.
-- The table is looked up as in acquire_many.sql; IS TRUE keeps the planner from joining it with the names and their tokens.
UPDATE sqllock_lock k
SET lease_id = NULL, released_at = clock_timestamp(), hold_until = k.acquired_at + $4::bigint * interval '1 microsecond'
FROM set_config('synchronous_commit', coalesce($5, current_setting('synchronous_commit')), true) a,
  set_config('lock_timeout', '1', true) b
WHERE k.name = ANY ($1::text::bytea[]) AND k.name BETWEEN '' AND decode(repeat('ff', 1025), 'hex') AND k.lease_id = $2
  AND ((k.name, k.token) IN (SELECT r.name, r.token FROM unnest($1::text::bytea[], $3::text::bigint[]) r (name, token))) IS TRUE
RETURNING encode(k.name, 'hex'), k.token,
  CASE WHEN k.waiter_until > clock_timestamp() THEN (pg_notify('sqllock', k.waiter_since || ' ' || encode(k.name, 'hex')) IS NOT NULL)::integer ELSE 0 END AS wanted
