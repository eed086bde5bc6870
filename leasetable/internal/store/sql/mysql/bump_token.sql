-- Bumps the token of a name if it is still the given one, so that no share or permit is acquired any more on the
-- condition that the name has that token. An absent name is inserted.
-- Parameters: ?1 name, ?2 token.
-- Keeps I12, I32.
INSERT INTO sqllock_lock (name, token, acquired_at)
VALUES (UNHEX(?1), ?2 + 1, UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE token = IF(token = ?2, token + 1, token)
