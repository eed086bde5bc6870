-- Renews a lease, unless it has expired. It returns the count of changes that others made to its locks. No row: the
-- lease and all its locks are over.
-- Parameters: $1 lease id.
-- Keeps I3, I10, I14.
UPDATE sqllock_lease
SET renewals = renewals + 1,
    expires_at = clock_timestamp() + ttl_us::float * interval '1 microsecond'
WHERE id = $1 AND expires_at > clock_timestamp()
RETURNING changes
