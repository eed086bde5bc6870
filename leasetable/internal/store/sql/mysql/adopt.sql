-- Moves a name from the lease that holds it to another lease, with the next token. The statement can be repeated: a
-- name with the new lease and the new token keeps them. The insert id is the token.
-- Parameters: ?1 new lease id, ?2 new token, ?3 metadata (NULL: keep it), ?4 name, ?5 old lease id, ?6 old token.
-- Keeps I6, I8, I12, I28.
UPDATE sqllock_lock
SET lease_id = UNHEX(?1), token = LAST_INSERT_ID(?2), metadata = COALESCE(UNHEX(?3), metadata), acquired_at = UTC_TIMESTAMP(6), released_at = NULL
WHERE name = UNHEX(?4) AND (lease_id = UNHEX(?5) AND token = ?6 OR lease_id = UNHEX(?1) AND token = ?2)
