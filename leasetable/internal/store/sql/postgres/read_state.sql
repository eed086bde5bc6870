-- Reads the state of a name. A lease row is committed before a lock row can refer to it, and lease ids are never
-- reused: if the row of the lease is gone, the lease is over for good. Without a lease, the expiry is the end of the
-- minimum hold. LIMIT makes the planner look up the lease, and not join its table, whatever the statistics say.
-- Parameters: $1 name.
-- Keeps I9.
SELECT k.token,
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
       CASE WHEN k.waiter_until > clock_timestamp() THEN k.waiter_since ELSE 0 END AS waiter_us,
       pg_catalog.encode(k.metadata, 'hex') AS metadata,
       k.permits
FROM sqllock_lock k
LEFT JOIN LATERAL (SELECT * FROM sqllock_lease WHERE id = k.lease_id LIMIT 1) l ON true
WHERE k.name = $1
