-- Takes the name $1 away from the lease $2, which holds it with the token $3, and leaves word for
-- it. A null lease is none: the name is kept after its release. The token rises, so that what is left of its holder can be told.
WITH freed AS (
  UPDATE sqllock_lock
  SET lease_id = NULL, token = token + 1, released_at = clock_timestamp(), hold_until = NULL
  WHERE name = $1 AND lease_id IS NOT DISTINCT FROM $2 AND token = $3
  RETURNING CASE WHEN waiter_until > clock_timestamp() THEN pg_notify('sqllock', waiter_since || ' ' || encode(name, 'hex')) END
), told AS (
  UPDATE sqllock_lease SET changes = changes + 1 WHERE id = $2 AND EXISTS (SELECT FROM freed)
)
SELECT count(*) FROM freed
