-- Moves a name from the lease that holds it to another lease, with the next token. The statement can be repeated: a
-- name with the new lease and the new token keeps them. The insert id is the token.
-- Parameters: new lease id, new token, metadata (NULL: keep it), name, old lease id, old token, new lease id, new
-- token.
UPDATE sqllock_lock
SET lease_id = UNHEX(?), token = LAST_INSERT_ID(?), metadata = COALESCE(UNHEX(?), metadata), acquired_at = UTC_TIMESTAMP(6), released_at = NULL
WHERE name = UNHEX(?) AND (lease_id = UNHEX(?) AND token = ? OR lease_id = UNHEX(?) AND token = ?)
