-- Pins the name $1 as held by the lease $2 with the token $3 until the transaction ends: a takeover
-- has to wait for the row. The lease row is left alone, for its renewal must not wait.
SELECT 1 FROM sqllock_lock WHERE name = $1 AND lease_id = $2 AND token = $3 FOR SHARE
