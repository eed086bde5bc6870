-- Who holds the name $1. A lease row was committed before a lock row could refer to it, and ids
-- are never used again: a lease that is referred to and gone is over for good.
-- The limit has the lease looked up, and its table not joined, whatever its statistics say.
-- Of a name without a lease the end is until when it is kept after its release.
SELECT k.token,
       encode(k.lease_id, 'hex') AS lease_id,
       k.lease_id IS NOT NULL AND l.id IS NULL AS gone,
       coalesce(l.owner, '') AS owner,
       coalesce(l.host, '') AS host,
       coalesce(l.pid, 0) AS pid,
       (extract(epoch FROM k.acquired_at) * 1000000)::bigint AS acquired_us,
       coalesce((extract(epoch FROM coalesce(l.expires_at, k.hold_until)) * 1000000)::bigint, 0) AS expires_us,
       coalesce((extract(epoch FROM coalesce(l.expires_at, k.hold_until) - clock_timestamp()) * 1000000)::bigint, 0) AS remaining_us,
       coalesce(l.ttl_us, 0) AS ttl_us,
       coalesce(l.renewals, 0) AS renewals,
       CASE WHEN k.waiter_until > clock_timestamp() THEN k.waiter_since ELSE 0 END AS waiter_us,
       encode(k.metadata, 'hex') AS metadata,
       k.permits
FROM sqllock_lock k
LEFT JOIN LATERAL (SELECT * FROM sqllock_lease WHERE id = k.lease_id LIMIT 1) l ON true
WHERE k.name = $1
