SELECT k.name,
       {state}
FROM (SELECT *, NULL AS hold_until FROM sqllock_permit WHERE name >= ?1 AND name <= ?2) k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
ORDER BY k.name, k.token
