-- Takes the permits of the name $1 away from all who have one, if its token is still $2, as it was when they were looked at,
-- and leaves word for their leases. The token rises: who has just seen it takes no permit. The leases are looked up as the names in
-- acquire_many.sql.
WITH raised AS (
  UPDATE sqllock_lock
  SET token = token + 1, released_at = clock_timestamp()
  WHERE name = $1 AND token = $2 AND lease_id IS NULL
  RETURNING 1
), freed AS (
  DELETE FROM sqllock_permit WHERE name = $1 AND EXISTS (SELECT FROM raised)
  RETURNING lease_id
), told AS (
  UPDATE sqllock_lease SET changes = changes + 1 WHERE id = ANY (ARRAY(SELECT lease_id FROM freed)) AND id BETWEEN '' AND decode(repeat('ff', 1025), 'hex')
)
SELECT count(*) FROM raised
