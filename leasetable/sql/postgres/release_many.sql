-- Releases names that are held, each by a lease with a token, and keeps them as release.sql does; it
-- returns those that it released, and whether another process waits for them, which it wakes. They are given
-- as a JSON list: name and lease in hex, the token, and the microseconds. $2 is the synchronous_commit, as
-- there. It waits for no row that somebody else has locked.
WITH held AS (
  SELECT k.name, (r->>3)::bigint AS keep_us
  FROM json_array_elements($1::text::json) r
  JOIN sqllock_lock k ON k.name = decode(r->>0, 'hex') AND k.lease_id = decode(r->>1, 'hex') AND k.token = (r->>2)::bigint
  FOR UPDATE OF k SKIP LOCKED
)
UPDATE sqllock_lock k
SET lease_id = NULL, released_at = clock_timestamp(), kept_until = k.acquired_at + held.keep_us * interval '1 microsecond'
FROM held, set_config('synchronous_commit', coalesce($2, current_setting('synchronous_commit')), true)
WHERE k.name = held.name
RETURNING k.name, k.token,
  CASE WHEN k.wanted_until > clock_timestamp() THEN (pg_notify('sqllock', k.wanted_since || ' ' || encode(k.name, 'hex')) IS NOT NULL)::integer ELSE 0 END AS wanted
