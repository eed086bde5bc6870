-- Reads the states of the names from one to another, both included, up to a limit; see read_state.sql.
-- Parameters: $1 first name, $2 last name, $3 limit.
SELECT pg_catalog.encode(k.name, 'hex') AS name,
       {lock},
       coalesce(CASE WHEN k.waiter_until > clock_timestamp() THEN k.waiter_since END, 0) AS waiter_us,
       pg_catalog.encode(k.metadata, 'hex') AS metadata
FROM sqllock_lock k
LEFT JOIN sqllock_lease l ON l.id = k.lease_id
WHERE k.name >= $1 AND k.name <= $2
ORDER BY k.name
LIMIT $3
