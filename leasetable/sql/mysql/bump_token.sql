-- Raises the token of a name if it is still what it was, so that whoever saw that takes no permit any more: the
-- name, the token, the token again.
INSERT INTO sqllock_lock (name, token, acquired_at)
VALUES (UNHEX(?), ? + 1, UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE token = IF(token = ?, token + 1, token)
