-- Reads the shares and permits of the names from one to another, both included; see read_permits.sql.
-- Parameters: $1 first name, $2 last name.
SELECT pg_catalog.encode(p.name, 'hex') AS name,
       p.token,
       pg_catalog.encode(p.lease_id, 'hex') AS lease_id,
       l.id IS NULL AS gone,
       coalesce(l.owner, '') AS owner,
       coalesce(l.host, '') AS host,
       coalesce(l.pid, 0) AS pid,
       (extract(epoch FROM p.acquired_at) OPERATOR(pg_catalog.*) 1000000)::bigint AS acquired_us,
       coalesce((extract(epoch FROM l.expires_at) OPERATOR(pg_catalog.*) 1000000)::bigint, 0) AS expires_us,
       coalesce((extract(epoch FROM l.expires_at - clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::bigint, 0) AS remaining_us,
       coalesce(l.ttl_us, 0) AS ttl_us,
       p.permits
FROM sqllock_permit p
LEFT JOIN sqllock_lease l ON l.id = p.lease_id
WHERE p.name >= $1 AND p.name <= $2
ORDER BY p.name, p.token
