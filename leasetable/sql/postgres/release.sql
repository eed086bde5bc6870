-- Releases the name $1 as held by the lease $2 with the token $3. The row stays, for its token.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = clock_timestamp()
WHERE name = $1 AND lease_id = $2 AND token = $3
