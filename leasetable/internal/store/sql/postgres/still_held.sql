-- Reads which of the given names a lease holds, as a whole or by a share or permit, and their tokens. BETWEEN has the planner
-- look the names up by the index, whatever the statistics say; see acquire_many.sql. The volatile function has pgpool-II send
-- the statement to the primary.
-- Parameters: $1 names (array as text), $2 lease id.
-- Keeps I20.
SELECT pg_catalog.encode(name, 'hex') AS name, token, false AS permit
FROM sqllock_lock
WHERE name = ANY ($1::text::bytea[]) AND name BETWEEN '' AND pg_catalog.decode(pg_catalog.repeat('ff', 1025), 'hex') AND lease_id = $2
  AND clock_timestamp() IS NOT NULL
UNION ALL
SELECT pg_catalog.encode(name, 'hex'), token, true
FROM sqllock_permit
WHERE name = ANY ($1::text::bytea[]) AND name BETWEEN '' AND pg_catalog.decode(pg_catalog.repeat('ff', 1025), 'hex') AND lease_id = $2
