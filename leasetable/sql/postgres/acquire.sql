-- Takes the name $1 for the lease $2, and for who was noted to wait since $3, with the metadata $4, if it is free, and neither
-- kept after its release nor in permits. A name that is absent is for insert.sql.
UPDATE sqllock_lock
SET token = token + 1, lease_id = $2, acquired_at = clock_timestamp(), released_at = NULL, metadata = $4,
    waiter_until = CASE WHEN waiter_since = $3 THEN NULL ELSE waiter_until END
WHERE name = $1 AND lease_id IS NULL AND permits IS NULL AND coalesce(hold_until <= clock_timestamp(), true)
RETURNING token
