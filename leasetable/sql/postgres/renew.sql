-- Renews the lease $1, and returns what others changed about its locks. No row: the lease is over,
-- and every lock of it with it.
UPDATE sqllock_lease
SET renewals = renewals + 1,
    expires_at = clock_timestamp() + ttl_us * interval '1 microsecond'
WHERE id = $1 AND expires_at > clock_timestamp()
RETURNING changes
