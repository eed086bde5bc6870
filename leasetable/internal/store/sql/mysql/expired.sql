SELECT id AS lease_id
FROM sqllock_lease
WHERE expires_at <= UTC_TIMESTAMP(6) - INTERVAL ?1 MICROSECOND
LIMIT ?2
