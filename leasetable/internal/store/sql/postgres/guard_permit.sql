-- Pins a share or permit until the transaction ends: it is not cleared before. The row of the name is not locked,
-- because other holders come and go.
-- Parameters: $1 name, $2 lease id, $3 token.
-- Keeps I13.
SELECT 1 FROM sqllock_permit WHERE name = $1 AND lease_id = $2 AND token = $3 FOR SHARE
