INSERT INTO sqllock_lease (id, owner, host, pid, ttl_us, created_at, expires_at)
SELECT ?1, ?2, ?3, ?4, ?5, {now}, {now} + ?5
WHERE NOT EXISTS (SELECT 1 FROM sqllock_version WHERE lowest > ?6)
