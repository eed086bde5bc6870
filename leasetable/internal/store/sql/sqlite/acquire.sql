-- An absent name is inserted.
INSERT INTO sqllock_lock (name, token, lease_id, acquired_at, metadata)
VALUES (?1, 1, ?2, {now}, ?4)
ON CONFLICT (name) DO UPDATE
SET token = token + 1, lease_id = excluded.lease_id, acquired_at = excluded.acquired_at, released_at = NULL, metadata = excluded.metadata,
    waiter_until = CASE WHEN waiter_since = ?3 THEN NULL ELSE waiter_until END
WHERE {free}
RETURNING token
