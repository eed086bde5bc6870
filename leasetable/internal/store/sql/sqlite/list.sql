SELECT k.name,
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
       CASE WHEN k.waiter_until > CAST(unixepoch('subsec') * 1000000 AS INTEGER) THEN k.waiter_since ELSE 0 END AS waiter_us,
       k.metadata,
       k.permits
FROM sqllock_lock k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
WHERE k.name >= ?1 AND k.name <= ?2
ORDER BY k.name
LIMIT ?3
