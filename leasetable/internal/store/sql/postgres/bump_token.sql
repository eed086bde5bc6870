-- Bumps the token of a name if it is still the given one, so that no share or permit is acquired any more on the
-- condition that the name has that token. An absent name is inserted.
-- Parameters: $1 name, $2 token.
-- Keeps I12, I32.
INSERT INTO sqllock_lock AS k (name, token, acquired_at)
VALUES ($1::bytea, $2::bigint + 1, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET token = k.token + 1 WHERE k.token = $2
