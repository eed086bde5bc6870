-- Acquires a free name: no lease holds it, it has no permits (permits IS NULL), and its minimum hold is over. It
-- withdraws the announcement of the waiter that acquires the name. An absent name is inserted.
-- Parameters: ?1 name, ?2 lease id, ?3 waiter_since of that waiter, ?4 metadata.
-- Keeps I6, I8, I12, I14, I22, I30, I35.
INSERT INTO sqllock_lock (name, token, lease_id, acquired_at, metadata)
VALUES (?1, 1, ?2, CAST(unixepoch('subsec') * 1000000 AS INTEGER), ?4)
ON CONFLICT (name) DO UPDATE
SET token = token + 1, lease_id = excluded.lease_id, acquired_at = excluded.acquired_at, released_at = NULL, metadata = excluded.metadata,
    waiter_until = CASE WHEN waiter_since = ?3 THEN NULL ELSE waiter_until END
WHERE lease_id IS NULL AND permits IS NULL AND coalesce(hold_until <= CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1)
RETURNING token
