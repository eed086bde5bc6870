-- Releases the name $1 whatever token the lease $2 may hold it with, and keeps it for $3 as release.sql does.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = clock_timestamp(), hold_until = acquired_at + $3::bigint * interval '1 microsecond'
WHERE name = $1 AND lease_id = $2
