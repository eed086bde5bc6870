-- Acquires the free names, inserts the absent ones, and returns the acquired ones.
-- Parameters: ?1 JSON list of the names (each in hex, with a token for release_many.sql), ?2 lease id, ?3 metadata.
-- Keeps I6, I8, I12, I22, I30, I35.
INSERT INTO sqllock_lock (name, token, lease_id, acquired_at, metadata)
SELECT unhex(value->>0), 1, ?2, {now}, ?3
FROM json_each(?1)
WHERE true
ON CONFLICT (name) DO UPDATE
SET token = token + 1, lease_id = excluded.lease_id, acquired_at = excluded.acquired_at, released_at = NULL, metadata = excluded.metadata
WHERE {free}
RETURNING name, token, false
