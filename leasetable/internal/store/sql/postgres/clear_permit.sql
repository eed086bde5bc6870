-- Deletes a share or permit whose lease is over for good. It does not wait for a transaction that its holder guards:
-- the share or permit stays until that has ended. The statement searches the table twice, and does not join it with
-- itself. The row of the lease is looked for as in takeover.sql.
-- Parameters: $1 name, $2 lease id, $3 token.
-- Keeps I33.
DELETE FROM sqllock_permit
WHERE name = $1 AND token = $3 AND EXISTS (
  SELECT FROM sqllock_permit WHERE name = $1 AND lease_id = $2 AND token = $3 FOR UPDATE SKIP LOCKED
) AND NOT EXISTS (SELECT FROM sqllock_lease WHERE id = $2)
