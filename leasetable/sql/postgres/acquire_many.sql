-- Takes the names $1, an array as text, for the lease $2 with the metadata $3, if they have rows and are free, and neither kept after
-- their release nor in permits, and returns those that it took. It does not wait for the row of a name that is held, whoever has
-- locked it, and if it would wait for another one for more than 1 ms, nothing is taken. The table is looked up by = ANY, and not
-- joined with a function of many rows, so that no plan, however old, compares every name with every row. All names are between the
-- bounds: by these a planner without statistics expects few rows, for which it uses the index.
UPDATE sqllock_lock k
SET token = k.token + 1, lease_id = $2, acquired_at = clock_timestamp(), released_at = NULL, metadata = $3
FROM set_config('lock_timeout', '1', true)
WHERE k.name = ANY ($1::text::bytea[]) AND k.name BETWEEN '' AND decode(repeat('ff', 1025), 'hex')
  AND k.lease_id IS NULL AND k.permits IS NULL AND coalesce(k.hold_until <= clock_timestamp(), true)
RETURNING encode(k.name, 'hex'), k.token, 0
