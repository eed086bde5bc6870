-- Bumps the token of a name if it is still the given one, so that no share or permit is acquired any more on the
-- condition that the name has that token. An absent name is inserted.
-- Parameters: ?1 name, ?2 token.
-- Keeps I12, I32.
INSERT INTO sqllock_lock (name, token, acquired_at)
VALUES (?1, ?2 + 1, CAST(unixepoch('subsec') * 1000000 AS INTEGER))
ON CONFLICT (name) DO UPDATE SET token = token + 1 WHERE token = ?2
