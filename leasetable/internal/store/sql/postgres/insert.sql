-- Acquires an absent name. If another session has inserted it, and has not committed, the statement waits for 5 ms.
-- Parameters: $1 name, $2 lease id, $3 metadata.
-- Keeps I6, I8.
INSERT INTO sqllock_lock (name, token, lease_id, acquired_at, metadata)
SELECT $1::bytea, 1, $2::bytea, clock_timestamp(), $3::bytea
FROM pg_catalog.set_config('lock_timeout', '5', true)
ON CONFLICT (name) DO NOTHING
RETURNING token
