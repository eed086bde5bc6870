-- Releases names that are held, each by a lease with a token, and keeps them as release.sql does; it
-- returns those that it released, and whether another process waits for them. They are given as a JSON list: name and lease in hex, the token, and
-- the microseconds.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), kept_until = acquired_at + r.keep_us
FROM (
  SELECT unhex(value->>0) AS its_name, unhex(value->>1) AS its_lease, value->>2 AS its_token, value->>3 AS keep_us
  FROM json_each(?1)
) r
WHERE name = r.its_name AND lease_id = r.its_lease AND token = r.its_token
RETURNING name, token, coalesce(wanted_until > CAST(unixepoch('subsec') * 1000000 AS INTEGER), 0) AS wanted
