-- Reads the state of a name, as in read_state.sql, in the first row, and its shares or permits, in one row each. All
-- rows are of one snapshot, so the shares or permits are those that were acquired up to the token of the first row.
-- Parameters: $1 name.
-- Keeps I29.
SELECT false AS permit,
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
       k.permits,
       coalesce((extract(epoch FROM k.exclusive_waiter_until - clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::bigint, 0) AS exclusive_us
FROM sqllock_lock k
LEFT JOIN LATERAL (SELECT * FROM sqllock_lease WHERE id = k.lease_id LIMIT 1) l ON true
WHERE k.name = $1
UNION ALL
SELECT true,
       p.token,
       pg_catalog.encode(p.lease_id, 'hex'),
       l.id IS NULL,
       coalesce(l.owner, ''),
       coalesce(l.host, ''),
       coalesce(l.pid, 0),
       (extract(epoch FROM p.acquired_at) OPERATOR(pg_catalog.*) 1000000)::bigint,
       coalesce((extract(epoch FROM l.expires_at) OPERATOR(pg_catalog.*) 1000000)::bigint, 0),
       coalesce((extract(epoch FROM l.expires_at - clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::bigint, 0),
       coalesce(l.ttl_us, 0),
       coalesce(l.renewals, 0),
       p.permits,
       0
FROM sqllock_permit p
LEFT JOIN LATERAL (SELECT * FROM sqllock_lease WHERE id = p.lease_id LIMIT 1) l ON true
WHERE p.name = $1
ORDER BY permit, token
