-- Takes for the lease $1, with the metadata $2, the name $3, whose token is $4, as acquire.sql does, unless it was kept before, and
-- returns nothing.
UPDATE sqllock_lock
SET token = token + 1, lease_id = $1, acquired_at = clock_timestamp(), released_at = NULL, metadata = $2
WHERE name = $3 AND token = $4 AND lease_id IS NULL AND permits IS NULL AND hold_until IS NULL
