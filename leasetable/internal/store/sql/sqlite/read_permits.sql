SELECT 0 AS permit,
       k.token,
       k.lease_id,
       k.lease_id IS NOT NULL AND l.id IS NULL AS gone,
       coalesce(l.owner, '') AS owner,
       coalesce(l.host, '') AS host,
       coalesce(l.pid, 0) AS pid,
       k.acquired_at AS acquired_us,
       coalesce(l.expires_at, k.hold_until, 0) AS expires_us,
       coalesce(coalesce(l.expires_at, k.hold_until) - CAST(unixepoch('subsec') * 1000000 AS INTEGER), 0) AS remaining_us,
       coalesce(l.ttl_us, 0) AS ttl_us,
       coalesce(l.renewals, 0) AS renewals,
       k.permits,
       coalesce(k.exclusive_waiter_until - CAST(unixepoch('subsec') * 1000000 AS INTEGER), 0) AS exclusive_us
FROM sqllock_lock k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
WHERE k.name = ?1
UNION ALL
SELECT 1,
       p.token,
       p.lease_id,
       l.id IS NULL,
       coalesce(l.owner, ''),
       coalesce(l.host, ''),
       coalesce(l.pid, 0),
       p.acquired_at,
       coalesce(l.expires_at, 0),
       coalesce(l.expires_at - CAST(unixepoch('subsec') * 1000000 AS INTEGER), 0),
       coalesce(l.ttl_us, 0),
       coalesce(l.renewals, 0),
       p.permits,
       0
FROM sqllock_permit p
LEFT JOIN sqllock_lease l ON l.id = p.lease_id
WHERE p.name = ?1
ORDER BY permit, token
