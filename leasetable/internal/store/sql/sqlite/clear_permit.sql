-- Deletes a share or permit whose lease is over for good; see takeover.sql.
-- Parameters: ?1 name, ?2 lease id, ?3 token.
-- Keeps I33.
DELETE FROM sqllock_permit WHERE name = ?1 AND lease_id = ?2 AND token = ?3 AND NOT EXISTS (SELECT 1 FROM sqllock_lease WHERE id = ?2)
