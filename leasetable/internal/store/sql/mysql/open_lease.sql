INSERT INTO sqllock_lease (id, owner, host, pid, ttl_us, created_at, expires_at)
SELECT UNHEX(?1), ?2, ?3, ?4, ?5, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ?5 MICROSECOND
FROM DUAL
WHERE NOT EXISTS (SELECT 1 FROM sqllock_version WHERE lowest > ?6)
