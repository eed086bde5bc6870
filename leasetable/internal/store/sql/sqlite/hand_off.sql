-- Hands a name, which a lease holds with a token, off to the next holders on the same lease, with the next tokens and
-- the metadata of the first of them. It returns the last of the tokens times 2, plus 1 if another process waits for the
-- name.
-- Parameters: ?1 metadata, ?2 name, ?3 lease id, ?4 token, ?5 how many tokens.
-- Keeps I12, I24, I36.
UPDATE sqllock_lock
SET token = token + ?5, acquired_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), metadata = ?1
WHERE name = ?2 AND lease_id = ?3 AND token = ?4
RETURNING token * 2 + coalesce(waiter_until > CAST(unixepoch('subsec') * 1000000 AS INTEGER), 0)
