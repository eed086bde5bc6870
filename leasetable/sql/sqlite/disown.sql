-- Releases the name ?1 whatever token the lease ?2 may hold it with.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
WHERE name = ?1 AND lease_id = ?2
