-- Reads which of the given names a lease holds, as a whole or by a share or permit, and their tokens. The volatile
-- function has pgpool-II send the statement to the primary.
-- Parameters: $1 names (array as text), $2 lease id.
-- Keeps I20.
SELECT pg_catalog.encode(name, 'hex') AS name, token, false AS permit
FROM sqllock_lock
WHERE {named} AND lease_id = $2 AND clock_timestamp() IS NOT NULL
UNION ALL
SELECT pg_catalog.encode(name, 'hex'), token, true
FROM sqllock_permit
WHERE {named} AND lease_id = $2
