-- Bumps the token of a name if the name is as it was read, so that no share or permit is acquired any more on that
-- condition: it has the given token, and is held by the given lease, which is over, or by none (NULL). An absent name is
-- inserted.
-- Parameters: ?1 name, ?2 token that was read, ?3 lease id that was read (or NULL).
-- Keeps I12, I32.
INSERT INTO sqllock_lock (name, token, acquired_at)
VALUES (?1, ?2 + 1, CAST(unixepoch('subsec') * 1000000 AS INTEGER))
ON CONFLICT (name) DO UPDATE SET token = token + 1 WHERE token = ?2 AND lease_id IS ?3
