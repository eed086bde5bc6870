-- Takes the name $1 for the lease $2, and for who was noted to wait since $3, with the metadata $4, if it is free, and neither
-- kept after its release nor in places. A name that is absent is for insert.sql.
UPDATE sqllock_lock
SET token = token + 1, lease_id = $2, acquired_at = clock_timestamp(), released_at = NULL, metadata = $4,
    wanted_until = CASE WHEN wanted_since = $3 THEN NULL ELSE wanted_until END
WHERE name = $1 AND lease_id IS NULL AND places IS NULL AND coalesce(kept_until <= clock_timestamp(), true)
RETURNING token
