SELECT k.name,
       {permit}
FROM sqllock_permit k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
WHERE k.name >= ?1 AND k.name <= ?2
ORDER BY k.name, k.token
