-- Inserts a lease, unless the tables require a program that knows a later version.
-- Parameters: $1 lease id, $2 owner, $3 host, $4 pid, $5 TTL in microseconds, $6 version that the program knows.
-- Keeps I7.
INSERT INTO sqllock_lease (id, owner, host, pid, ttl_us, created_at, expires_at)
SELECT $1::bytea, $2::text, $3::text, $4::bigint, $5::bigint, clock_timestamp(), clock_timestamp() + $5::bigint::float * interval '1 microsecond'
WHERE NOT EXISTS (SELECT FROM sqllock_version WHERE lowest > $6::bigint)
