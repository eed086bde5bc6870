SELECT FALSE AS permit,
       k.token,
       k.lease_id,
       k.lease_id IS NOT NULL AND l.id IS NULL AS gone,
       COALESCE(l.owner, '') AS owner,
       COALESCE(l.host, '') AS host,
       COALESCE(l.pid, 0) AS pid,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', k.acquired_at) AS acquired_us,
       COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', COALESCE(l.expires_at, k.hold_until)), 0) AS expires_us,
       COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), COALESCE(l.expires_at, k.hold_until)), 0) AS remaining_us,
       COALESCE(l.ttl_us, 0) AS ttl_us,
       COALESCE(l.renewals, 0) AS renewals,
       k.permits,
       COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), k.exclusive_waiter_until), 0) AS exclusive_us
FROM sqllock_lock k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
WHERE k.name = UNHEX(?1)
UNION ALL
SELECT TRUE,
       p.token,
       p.lease_id,
       l.id IS NULL,
       COALESCE(l.owner, ''),
       COALESCE(l.host, ''),
       COALESCE(l.pid, 0),
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', p.acquired_at),
       COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', l.expires_at), 0),
       COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.expires_at), 0),
       COALESCE(l.ttl_us, 0),
       COALESCE(l.renewals, 0),
       p.permits,
       0
FROM sqllock_permit p
LEFT JOIN sqllock_lease l ON l.id = p.lease_id
WHERE p.name = UNHEX(?1)
ORDER BY permit, token
