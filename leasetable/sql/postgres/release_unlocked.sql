-- Releases names as release_many.sql does, and leaves out rows that somebody else has locked.
UPDATE sqllock_lock k
SET lease_id = NULL, released_at = clock_timestamp(), kept_until = k.acquired_at + $4::bigint * interval '1 microsecond'
FROM (
  SELECT k.name
  FROM unnest($1::text::bytea[], $3::text::bigint[]) r (name, token)
  JOIN sqllock_lock k ON k.name = r.name AND k.lease_id = $2 AND k.token = r.token
  FOR UPDATE OF k SKIP LOCKED
) held, set_config('synchronous_commit', coalesce($5, current_setting('synchronous_commit')), true)
WHERE k.name = held.name
RETURNING encode(k.name, 'hex'), k.token,
  CASE WHEN k.wanted_until > clock_timestamp() THEN (pg_notify('sqllock', k.wanted_since || ' ' || encode(k.name, 'hex')) IS NOT NULL)::integer ELSE 0 END AS wanted
