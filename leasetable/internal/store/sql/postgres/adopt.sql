-- Moves a name from the lease that holds it to another lease, with the next token. The statement can be repeated: a
-- name with the new lease and the new token keeps them.
-- Parameters: $1 new lease id, $2 new token, $3 metadata (NULL: keep it), $4 name, $5 old lease id, $6 old token.
-- Keeps I6, I8, I12, I28.
UPDATE sqllock_lock
SET token = $2::bigint, lease_id = $1, acquired_at = clock_timestamp(), released_at = NULL, metadata = coalesce($3::bytea, metadata)
WHERE name = $4 AND (lease_id = $5 AND token = $6 OR lease_id = $1 AND token = $2::bigint)
RETURNING token
