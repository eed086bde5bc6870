-- Clears the permit of the name $1 that the lease $2 had with the token $3, which is over for good. It does not wait for
-- a transaction that its holder guarded: until that has ended the permit is not to be had. The table is looked up twice, and not
-- joined with itself.
DELETE FROM sqllock_permit
WHERE name = $1 AND token = $3 AND EXISTS (
  SELECT FROM sqllock_permit WHERE name = $1 AND lease_id = $2 AND token = $3 FOR UPDATE SKIP LOCKED
)
