-- Pins a name, as held by a lease with a token, until the transaction ends: a takeover waits for the row. The lease row
-- is not locked, because its renewal must not wait.
-- Parameters: $1 name, $2 lease id, $3 token.
-- Keeps I13, I14.
SELECT 1 FROM sqllock_lock WHERE name = $1 AND lease_id = $2 AND token = $3 FOR SHARE
