-- Renews a lease. What others changed about its locks comes back as the insert id. No row: the
-- lease is over, and every lock of it with it. UTC_TIMESTAMP is when the statement began: waiting
-- for the row never makes the lease longer than the holder counts.
UPDATE sqllock_lease
SET renewals = renewals + 1,
    changes = LAST_INSERT_ID(changes),
    expires_at = UTC_TIMESTAMP(6) + INTERVAL ttl_us MICROSECOND
WHERE id = UNHEX(?) AND expires_at > UTC_TIMESTAMP(6)
