SELECT p.name,
       p.token,
       p.lease_id,
       l.id IS NULL AS gone,
       COALESCE(l.owner, '') AS owner,
       COALESCE(l.host, '') AS host,
       COALESCE(l.pid, 0) AS pid,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', p.acquired_at) AS acquired_us,
       COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', l.expires_at), 0) AS expires_us,
       COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.expires_at), 0) AS remaining_us,
       COALESCE(l.ttl_us, 0) AS ttl_us,
       p.permits
FROM sqllock_permit p
LEFT JOIN sqllock_lease l ON l.id = p.lease_id
WHERE p.name >= UNHEX(?1) AND p.name <= UNHEX(?2)
ORDER BY p.name, p.token
