-- Reads the states of the names from one to another, both included, up to a limit; see read_state.sql.
-- Parameters: $1 first name, $2 last name, $3 limit.
SELECT pg_catalog.encode(k.name, 'hex') AS name,
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
       CASE WHEN k.waiter_until > clock_timestamp() THEN k.waiter_since ELSE 0 END AS waiter_us,
       pg_catalog.encode(k.metadata, 'hex') AS metadata,
       k.permits
FROM sqllock_lock k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
WHERE k.name >= $1 AND k.name <= $2
ORDER BY k.name
LIMIT $3
