SELECT k.name,
       {lock},
       coalesce(CASE WHEN k.waiter_until > {now} THEN k.waiter_since END, 0) AS waiter_us,
       k.metadata
FROM sqllock_lock k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
WHERE k.name >= ?1 AND k.name <= ?2
ORDER BY k.name
LIMIT ?3
