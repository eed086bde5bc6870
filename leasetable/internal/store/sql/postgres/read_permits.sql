-- Reads the state of a name, as in read_state.sql, in the first row, and its shares or permits, in one row each. All
-- rows are of one snapshot, so the shares or permits are those that were acquired up to the token of the first row.
-- Parameters: $1 name.
-- Keeps I29.
SELECT false AS permit,
       {lock},
       (extract(epoch FROM least(greatest(k.exclusive_waiter_until, timestamptz '1970-01-01Z'), timestamptz '2200-01-01Z') - clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::bigint AS exclusive_us
FROM sqllock_lock k
LEFT JOIN LATERAL (SELECT * FROM sqllock_lease WHERE id = k.lease_id LIMIT 1) l ON true
WHERE k.name = $1
UNION ALL
SELECT true, {permit}, 0
FROM sqllock_permit k
LEFT JOIN LATERAL (SELECT * FROM sqllock_lease WHERE id = k.lease_id LIMIT 1) l ON true
WHERE k.name = $1
ORDER BY permit, token
