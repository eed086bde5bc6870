-- Takes the name $1, which is absent, for the lease $2 with the metadata $3.
INSERT INTO sqllock_lock (name, token, lease_id, acquired_at, metadata)
VALUES ($1, 1, $2, clock_timestamp(), $3)
ON CONFLICT (name) DO NOTHING
RETURNING token
