-- Ends leases that expired at least the given time ago, up to a limit.
-- Parameters: ?1 microseconds, ?2 limit.
DELETE FROM sqllock_lease
WHERE expires_at <= UTC_TIMESTAMP(6) - INTERVAL ?1 MICROSECOND
LIMIT ?2
