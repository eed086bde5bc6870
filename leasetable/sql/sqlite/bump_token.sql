-- Raises the token of the name ?1 if it is still ?2, so that whoever saw that takes no permit any more.
INSERT INTO sqllock_lock (name, token, acquired_at)
VALUES (?1, ?2 + 1, CAST(unixepoch('subsec') * 1000000 AS INTEGER))
ON CONFLICT (name) DO UPDATE SET token = token + 1 WHERE token = ?2
