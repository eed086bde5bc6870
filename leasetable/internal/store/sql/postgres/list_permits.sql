-- Reads the shares and permits of the names from one to another, both included; see read_permits.sql.
-- Parameters: $1 first name, $2 last name.
SELECT pg_catalog.encode(k.name, 'hex') AS name,
       {permit}
FROM sqllock_permit k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
WHERE k.name >= $1 AND k.name <= $2
ORDER BY k.name, k.token
