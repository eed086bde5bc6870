-- Acquires the free names among those that have rows, and returns the acquired ones. It does not wait for the row of a
-- held name, even if that is locked. If it would wait for another row for more than 1 ms, nothing is acquired. The
-- condition is = ANY, not a join with a function of many rows, so that no plan, however old, compares every name with
-- every row. All names are between the bounds of BETWEEN: because of the bounds a planner without statistics expects
-- few rows, and uses the index.
-- Parameters: $1 names (array as text), $2 lease id, $3 metadata.
-- Keeps I6, I8, I12, I22, I30, I35.
UPDATE sqllock_lock k
SET token = k.token + 1, lease_id = $2, acquired_at = clock_timestamp(), released_at = NULL, metadata = $3
FROM pg_catalog.set_config('lock_timeout', '1', true)
WHERE k.name = ANY ($1::text::bytea[]) AND k.name BETWEEN '' AND pg_catalog.decode(pg_catalog.repeat('ff', 1025), 'hex')
  AND {free}
RETURNING pg_catalog.encode(k.name, 'hex'), k.token, 0
