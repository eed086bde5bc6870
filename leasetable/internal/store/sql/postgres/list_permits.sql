-- Reads the shares and permits of the names from one to another, both included; see read_permits.sql.
-- Parameters: $1 first name, $2 last name.
SELECT pg_catalog.encode(k.name, 'hex') AS name,
       {state}
FROM (SELECT *, NULL::timestamptz AS hold_until FROM sqllock_permit WHERE name >= $1 AND name <= $2) k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
ORDER BY k.name, k.token
