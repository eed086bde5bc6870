-- Acquires a free name whose token is known, as acquire.sql does, if the last release set no minimum hold. It returns
-- no row.
-- Parameters: $1 lease id, $2 metadata, $3 name, $4 token.
UPDATE sqllock_lock
SET token = token + 1, lease_id = $1, acquired_at = clock_timestamp(), released_at = NULL, metadata = $2
WHERE name = $3 AND token = $4 AND lease_id IS NULL AND permits IS NULL AND hold_until IS NULL
