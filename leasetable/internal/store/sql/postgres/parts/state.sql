-- What is read of a row k that may refer to a lease, and of the row l of that lease: see read_state.sql. A permit has no
-- minimum hold, so hold_until is NULL there.
k.token,
pg_catalog.encode(k.lease_id, 'hex') AS lease_id,
k.lease_id IS NOT NULL AND l.id IS NULL AS gone,
coalesce(l.owner, '') AS owner,
coalesce(l.host, '') AS host,
coalesce(l.pid, 0) AS pid,
(extract(epoch FROM k.acquired_at) OPERATOR(pg_catalog.*) 1000000)::bigint AS acquired_us,
coalesce((extract(epoch FROM coalesce(l.expires_at, k.hold_until)) OPERATOR(pg_catalog.*) 1000000)::bigint, 0) AS expires_us,
coalesce((extract(epoch FROM coalesce(l.expires_at, k.hold_until) - clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::bigint, 0) AS remaining_us,
coalesce(l.ttl_us, 0) AS ttl_us,
coalesce(l.renewals, 0) AS renewals,
k.permits
