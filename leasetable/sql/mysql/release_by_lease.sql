-- Releases a name whatever token the lease may hold it with, and keeps it as release.sql does: the microseconds, the name, the lease.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = UTC_TIMESTAMP(6), hold_until = acquired_at + INTERVAL ? MICROSECOND
WHERE name = UNHEX(?) AND lease_id = UNHEX(?)
