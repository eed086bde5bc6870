SELECT {lock},
       COALESCE(IF(k.waiter_until > UTC_TIMESTAMP(6), k.waiter_since, 0), 0) AS waiter_us,
       k.metadata
FROM sqllock_lock k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
WHERE k.name = UNHEX(?1)
