-- Takes names, each for a lease, if they are absent or free, and neither kept after their release nor in places, and
-- returns those that it took. They are given as a JSON list: name and lease in hex, two things for
-- release_many.sql, the metadata in hex.
INSERT INTO sqllock_lock (name, token, lease_id, acquired_at, metadata)
SELECT unhex(value->>0), 1, unhex(value->>1), CAST(unixepoch('subsec') * 1000000 AS INTEGER), unhex(value->>4)
FROM json_each(?1)
WHERE true
ON CONFLICT (name) DO UPDATE
SET token = token + 1, lease_id = excluded.lease_id, acquired_at = excluded.acquired_at, released_at = NULL, metadata = excluded.metadata
WHERE lease_id IS NULL AND places IS NULL AND coalesce(kept_until <= CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1)
RETURNING name, token, false
