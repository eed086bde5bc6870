-- Deletes a share or permit whose lease is over for good. It does not wait for a transaction that its holder guards:
-- the share or permit stays until that has ended. LIMIT makes the server run the inner statement by itself. The row of
-- the lease is looked for as in takeover.sql.
-- Parameters: ?1 name, ?2 lease id, ?3 token.
-- Keeps I33.
DELETE p
FROM sqllock_permit p
JOIN (
  SELECT name, token FROM sqllock_permit
  WHERE name = UNHEX(?1) AND lease_id = UNHEX(?2) AND token = ?3 AND NOT EXISTS (SELECT 1 FROM sqllock_lease WHERE id = UNHEX(?2))
  LIMIT 1 FOR UPDATE SKIP LOCKED
) free ON free.name = p.name AND free.token = p.token
