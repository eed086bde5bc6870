-- Takes the name ?1 for the lease ?2, and for who was noted to wait since ?3, with the metadata ?4, if it is absent or free, and
-- neither kept after its release nor in permits.
INSERT INTO sqllock_lock (name, token, lease_id, acquired_at, metadata)
VALUES (?1, 1, ?2, CAST(unixepoch('subsec') * 1000000 AS INTEGER), ?4)
ON CONFLICT (name) DO UPDATE
SET token = token + 1, lease_id = excluded.lease_id, acquired_at = excluded.acquired_at, released_at = NULL, metadata = excluded.metadata,
    waiter_until = CASE WHEN waiter_since = ?3 THEN NULL ELSE waiter_until END
WHERE lease_id IS NULL AND permits IS NULL AND coalesce(hold_until <= CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1)
RETURNING token
