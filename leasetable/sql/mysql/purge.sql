-- Ends leases that expired some microseconds ago or earlier, some of them at most.
DELETE FROM sqllock_lease
WHERE expires_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND
LIMIT ?
