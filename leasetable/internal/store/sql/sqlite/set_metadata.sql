-- Attaches metadata to a name that a lease holds with a token.
-- Parameters: ?1 metadata, ?2 name, ?3 lease id, ?4 token.
UPDATE sqllock_lock
SET metadata = ?1
WHERE name = ?2 AND lease_id = ?3 AND token = ?4
RETURNING token
