-- Takes the name ?1 for the lease ?2 if it is absent or free, and not kept after its release.
INSERT INTO sqllock_lock (name, token, lease_id, acquired_at)
VALUES (?1, 1, ?2, CAST(unixepoch('subsec') * 1000000 AS INTEGER))
ON CONFLICT (name) DO UPDATE
SET token = token + 1, lease_id = excluded.lease_id, acquired_at = excluded.acquired_at, released_at = NULL, wanted_until = NULL
WHERE lease_id IS NULL AND coalesce(kept_until <= CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1)
RETURNING token
