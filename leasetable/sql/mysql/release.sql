-- Releases a name, and keeps it until so many microseconds after it was acquired, if that is not
-- null: the microseconds, the name, the lease that holds it, the token. The row stays, for its token.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = UTC_TIMESTAMP(6), kept_until = acquired_at + INTERVAL ? MICROSECOND
WHERE name = UNHEX(?) AND lease_id = UNHEX(?) AND token = ?
