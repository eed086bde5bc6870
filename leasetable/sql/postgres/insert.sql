-- Takes the name $1, which is absent, for the lease $2 with the metadata $3. For somebody who has inserted it, and not committed,
-- it waits for 5 ms.
INSERT INTO sqllock_lock (name, token, lease_id, acquired_at, metadata)
SELECT $1::bytea, 1, $2::bytea, clock_timestamp(), $3::bytea
FROM set_config('lock_timeout', '5', true)
ON CONFLICT (name) DO NOTHING
RETURNING token
