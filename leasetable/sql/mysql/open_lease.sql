-- A new lease: its id, owner, host, pid, time to live in microseconds, and that again, for a program that knows the last version,
-- unless the tables take a program that knows a later one.
INSERT INTO sqllock_lease (id, owner, host, pid, ttl_us, created_at, expires_at)
SELECT UNHEX(?), ?, ?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
FROM DUAL
WHERE NOT EXISTS (SELECT 1 FROM sqllock_version WHERE lowest > ?)
