-- The insert id is the count of changes. UTC_TIMESTAMP is the time when the statement began: waiting for the row never makes
-- the lease longer than the holder counts.
UPDATE sqllock_lease
SET renewals = renewals + 1,
    changes = LAST_INSERT_ID(changes),
    expires_at = UTC_TIMESTAMP(6) + INTERVAL ttl_us MICROSECOND
WHERE id = UNHEX(?1) AND expires_at > UTC_TIMESTAMP(6)
