-- Reads the state of a name. A lease row is committed before a lock row can refer to it, and lease ids are never
-- reused: if the row of the lease is gone, the lease is over for good. LIMIT makes the planner look up the lease, and
-- not join its table, whatever the statistics say.
-- Parameters: $1 name.
-- Keeps I9.
SELECT {lock},
       coalesce(CASE WHEN k.waiter_until > clock_timestamp() THEN k.waiter_since END, 0) AS waiter_us,
       pg_catalog.encode(k.metadata, 'hex') AS metadata
FROM sqllock_lock k
LEFT JOIN LATERAL (SELECT * FROM sqllock_lease WHERE id = k.lease_id LIMIT 1) l ON true
WHERE k.name = $1
