-- Acquires the whole of a name that had shares or permits and has none left, if its token is still the one that was
-- read with them: every share or permit bumps the token.
-- Parameters: $1 lease id, $2 metadata, $3 name, $4 token.
-- Keeps I6, I8, I12, I30.
UPDATE sqllock_lock
SET token = token + 1, lease_id = $1, permits = NULL, exclusive_waiter_until = NULL, acquired_at = clock_timestamp(), released_at = NULL, metadata = $2
WHERE name = $3 AND token = $4 AND lease_id IS NULL
RETURNING token
