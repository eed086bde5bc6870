SELECT k.name,
       {state}
FROM (SELECT *, CAST(NULL AS DATETIME(6)) AS hold_until FROM sqllock_permit WHERE name >= UNHEX(?1) AND name <= UNHEX(?2)) k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
ORDER BY k.name, k.token
