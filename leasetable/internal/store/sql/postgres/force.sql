-- Takes a name away from the lease that holds it with the given token, and increments the changes of that lease. If the
-- lease id is NULL, the name is in its minimum hold. The token is bumped, so that leftovers of the holder can be
-- recognized.
-- Parameters: $1 name, $2 lease id (or NULL), $3 token.
-- Keeps I6, I12, I20.
WITH freed AS (
  UPDATE sqllock_lock
  SET lease_id = NULL, token = token + 1, released_at = clock_timestamp(), hold_until = NULL
  WHERE name = $1 AND lease_id IS NOT DISTINCT FROM $2 AND token = $3
  RETURNING 1
), told AS (
  UPDATE sqllock_lease SET changes = changes + 1 WHERE id = $2 AND EXISTS (SELECT FROM freed)
)
SELECT count(*) FROM freed
