-- Acquires the free names among those that have rows, and returns the acquired ones. It does not wait for the row of a
-- held name, even if that is locked. If it would wait for another row for more than 1 ms, nothing is acquired.
-- Parameters: $1 names (array as text), $2 lease id, $3 metadata.
-- Keeps I6, I8, I12, I22, I30, I35.
UPDATE sqllock_lock k
SET token = k.token + 1, lease_id = $2, acquired_at = clock_timestamp(), released_at = NULL, metadata = $3
FROM pg_catalog.set_config('lock_timeout', '1', true)
WHERE {named} AND {free}
RETURNING pg_catalog.encode(k.name, 'hex'), k.token, 0
