-- Inserts a lease, unless the tables require a program that knows a later version.
-- Parameters: ?1 lease id, ?2 owner, ?3 host, ?4 pid, ?5 TTL in microseconds, ?6 version that the program knows.
-- Keeps I7.
INSERT INTO sqllock_lease (id, owner, host, pid, ttl_us, created_at, expires_at)
SELECT ?1, ?2, ?3, ?4, ?5, CAST(unixepoch('subsec') * 1000000 AS INTEGER), CAST(unixepoch('subsec') * 1000000 AS INTEGER) + ?5
WHERE NOT EXISTS (SELECT 1 FROM sqllock_version WHERE lowest > ?6)
