-- Hands a name, which a lease holds with a token, off to the next holder on the same lease, with the next token and its
-- metadata. It returns the next token times 2, plus 1 if another process waits for the name.
-- Parameters: ?1 metadata, ?2 name, ?3 lease id, ?4 token.
-- Keeps I12, I24, I36.
UPDATE sqllock_lock
SET token = token + 1, acquired_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), metadata = ?1
WHERE name = ?2 AND lease_id = ?3 AND token = ?4
RETURNING token * 2 + coalesce(waiter_until > CAST(unixepoch('subsec') * 1000000 AS INTEGER), 0)
