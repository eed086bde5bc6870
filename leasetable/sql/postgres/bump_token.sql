-- Raises the token of the name $1 if it is still $2, so that whoever saw that takes no permit any more.
INSERT INTO sqllock_lock AS k (name, token, acquired_at)
VALUES ($1::bytea, $2::bigint + 1, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET token = k.token + 1 WHERE k.token = $2
