-- Reads whether a lease has a share or permit of a name with a token; see guard.sql.
-- Parameters: ?1 name, ?2 lease id, ?3 token.
-- Keeps I13.
SELECT 1 FROM sqllock_permit WHERE name = ?1 AND lease_id = ?2 AND token = ?3
