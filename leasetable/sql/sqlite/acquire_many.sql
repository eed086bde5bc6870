-- Takes names for the lease ?2 with the metadata ?3 if they are absent or free, and neither kept after their release nor
-- in permits, and returns those that it took. ?1 is a JSON list of them, each in hex and with a token for release_many.sql.
INSERT INTO sqllock_lock (name, token, lease_id, acquired_at, metadata)
SELECT unhex(value->>0), 1, ?2, CAST(unixepoch('subsec') * 1000000 AS INTEGER), ?3
FROM json_each(?1)
WHERE true
ON CONFLICT (name) DO UPDATE
SET token = token + 1, lease_id = excluded.lease_id, acquired_at = excluded.acquired_at, released_at = NULL, metadata = excluded.metadata
WHERE lease_id IS NULL AND permits IS NULL AND coalesce(hold_until <= CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1)
RETURNING name, token, false
