SELECT FALSE AS permit,
       {lock},
       COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), k.exclusive_waiter_until), 0) AS exclusive_us
FROM sqllock_lock k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
WHERE k.name = UNHEX(?1)
UNION ALL
SELECT TRUE, {permit}, 0
FROM sqllock_permit k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
WHERE k.name = UNHEX(?1)
ORDER BY permit, token
