-- Bumps the token of a name if the name is as it was read, so that no share or permit is acquired any more on that
-- condition: it has the given token, and is held by the given lease, which is over, or by none (NULL). An absent name is
-- inserted.
-- Parameters: ?1 name, ?2 token that was read, ?3 lease id that was read (or NULL).
-- Keeps I12, I32.
INSERT INTO sqllock_lock (name, token, acquired_at)
VALUES (UNHEX(?1), ?2 + 1, UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE token = IF(token = ?2 AND lease_id <=> UNHEX(?3), token + 1, token)
