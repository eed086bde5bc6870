-- Renews a lease, unless it has expired. The insert id is the count of changes that others made to its locks. No row:
-- the lease and all its locks are over. UTC_TIMESTAMP is the time when the statement began: waiting for the row never
-- makes the lease longer than the holder counts.
-- Parameters: ?1 lease id.
-- Keeps I3, I10, I14.
UPDATE sqllock_lease
SET renewals = renewals + 1,
    changes = LAST_INSERT_ID(changes),
    expires_at = UTC_TIMESTAMP(6) + INTERVAL ttl_us MICROSECOND
WHERE id = UNHEX(?1) AND expires_at > UTC_TIMESTAMP(6)
