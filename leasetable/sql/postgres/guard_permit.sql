-- Pins the permit of the name $1 that the lease $2 has with the token $3 until the transaction ends: it is not
-- cleared before. The row of the name is left alone, for the other holders come and go.
SELECT 1 FROM sqllock_permit WHERE name = $1 AND lease_id = $2 AND token = $3 FOR SHARE
