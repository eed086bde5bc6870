SELECT 0 AS permit,
       {lock},
       coalesce(CAST(k.exclusive_waiter_until - {now} AS INTEGER), 0) AS exclusive_us
FROM sqllock_lock k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
WHERE k.name = ?1
UNION ALL
SELECT 1, {permit}, 0
FROM sqllock_permit k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
WHERE k.name = ?1
ORDER BY permit, token
