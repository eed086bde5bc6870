-- Bumps the token of a name if the name is as it was read, so that no share or permit is acquired any more on that
-- condition: it has the given token, and is held by the given lease, which is over, or by none (NULL). An absent name is
-- inserted.
-- Parameters: $1 name, $2 token that was read, $3 lease id that was read (or NULL).
-- Keeps I12, I32.
INSERT INTO sqllock_lock AS k (name, token, acquired_at)
VALUES ($1::bytea, $2::bigint + 1, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET token = k.token + 1 WHERE k.token = $2 AND k.lease_id IS NOT DISTINCT FROM $3::bytea
