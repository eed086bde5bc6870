-- Renews a lease. No row: the lease is over, and every lock of it with it. UTC_TIMESTAMP is when
-- the statement began: waiting for the row never makes the lease longer than the holder counts.
UPDATE sqllock_lease
SET renewals = renewals + 1,
    expires_at = UTC_TIMESTAMP(6) + INTERVAL ttl_us MICROSECOND
WHERE id = UNHEX(?) AND expires_at > UTC_TIMESTAMP(6)
