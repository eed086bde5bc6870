SELECT p.name,
       p.token,
       p.lease_id,
       l.id IS NULL AS gone,
       coalesce(l.owner, '') AS owner,
       coalesce(l.host, '') AS host,
       coalesce(l.pid, 0) AS pid,
       p.acquired_at AS acquired_us,
       coalesce(l.expires_at, 0) AS expires_us,
       coalesce(l.expires_at - CAST(unixepoch('subsec') * 1000000 AS INTEGER), 0) AS remaining_us,
       coalesce(l.ttl_us, 0) AS ttl_us,
       p.permits
FROM sqllock_permit p
LEFT JOIN sqllock_lease l ON l.id = p.lease_id
WHERE p.name >= ?1 AND p.name <= ?2
ORDER BY p.name, p.token
