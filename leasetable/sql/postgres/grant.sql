-- A new lease: $1 its id, $2 owner, $3 host, $4 pid, $5 time to live in
-- microseconds, $6 the same again.
INSERT INTO sqllock_lease (id, owner, host, pid, ttl_us, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, clock_timestamp(), clock_timestamp() + $6::bigint * interval '1 microsecond')
