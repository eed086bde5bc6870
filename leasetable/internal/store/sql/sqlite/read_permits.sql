SELECT 0 AS permit,
       {state},
       coalesce(k.exclusive_waiter_until - {now}, 0) AS exclusive_us
FROM sqllock_lock k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
WHERE k.name = ?1
UNION ALL
SELECT 1, {state}, 0
FROM (SELECT *, NULL AS hold_until FROM sqllock_permit WHERE name = ?1) k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
ORDER BY permit, token
