-- Releases a name whatever token the lease may hold it with.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = UTC_TIMESTAMP(6)
WHERE name = UNHEX(?) AND lease_id = UNHEX(?)
