-- Releases the name $1 whatever token the lease $2 may hold it with.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = clock_timestamp()
WHERE name = $1 AND lease_id = $2
