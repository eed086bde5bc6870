-- Attaches the metadata $1 to the name $2 while the lease $3 holds it with the token $4.
UPDATE sqllock_lock
SET metadata = $1
WHERE name = $2 AND lease_id = $3 AND token = $4
RETURNING token
