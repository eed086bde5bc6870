-- Takes all shares or permits of a name away from their holders, if its token is still the one that was read with them,
-- and increments the changes of their leases. The token is bumped: no share or permit is acquired any more on the
-- condition that the name has the old token.
-- Parameters: $1 name, $2 token.
-- Keeps I12, I20, I34.
WITH raised AS (
  UPDATE sqllock_lock
  SET token = token + 1, released_at = clock_timestamp()
  WHERE name = $1 AND token = $2 AND lease_id IS NULL
  RETURNING 1
), freed AS (
  DELETE FROM sqllock_permit WHERE name = $1 AND EXISTS (SELECT FROM raised)
  RETURNING lease_id
), told AS (
  UPDATE sqllock_lease SET changes = changes + 1 WHERE id = ANY (ARRAY(SELECT lease_id FROM freed)) AND id {bounded}
)
SELECT count(*) FROM raised
