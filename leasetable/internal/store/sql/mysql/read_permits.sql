SELECT FALSE AS permit,
       {state},
       COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), k.exclusive_waiter_until), 0) AS exclusive_us
FROM sqllock_lock k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
WHERE k.name = UNHEX(?1)
UNION ALL
SELECT TRUE, {state}, 0
FROM (SELECT *, CAST(NULL AS DATETIME(6)) AS hold_until FROM sqllock_permit WHERE name = UNHEX(?1)) k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
ORDER BY permit, token
