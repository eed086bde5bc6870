-- Releases names that are held, each by a lease with a token, and keeps them as release.sql does; it
-- returns those that it released. They are given as a JSON list: name and lease in hex, the token, and
-- the microseconds. It waits for no row that somebody else has locked.
WITH held AS (
  SELECT k.name, (r->>3)::bigint AS keep_us
  FROM json_array_elements($1::text::json) r
  JOIN sqllock_lock k ON k.name = decode(r->>0, 'hex') AND k.lease_id = decode(r->>1, 'hex') AND k.token = (r->>2)::bigint
  FOR UPDATE OF k SKIP LOCKED
)
UPDATE sqllock_lock k
SET lease_id = NULL, released_at = clock_timestamp(), kept_until = k.acquired_at + held.keep_us * interval '1 microsecond'
FROM held
WHERE k.name = held.name
RETURNING k.name, k.token
