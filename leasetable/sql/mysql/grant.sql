-- A new lease: its id, owner, host, pid, time to live in microseconds, and that again.
INSERT INTO sqllock_lease (id, owner, host, pid, ttl_us, created_at, expires_at)
VALUES (UNHEX(?), ?, ?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)
