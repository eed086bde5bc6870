-- Attaches metadata to a name that a lease holds with a token. The insert id is the token, even if the metadata stays
-- the same: a row that stays the same does not count as changed.
-- Parameters: metadata, name, lease id, token.
UPDATE sqllock_lock
SET metadata = UNHEX(?), token = LAST_INSERT_ID(token)
WHERE name = UNHEX(?) AND lease_id = UNHEX(?) AND token = ?
