-- Reads whether a lease holds a name with a token. A transaction that has read it can no longer write once another
-- holder has acquired the name.
-- Parameters: ?1 name, ?2 lease id, ?3 token.
-- Keeps I13, I14.
SELECT 1 FROM sqllock_lock WHERE name = ?1 AND lease_id = ?2 AND token = ?3
