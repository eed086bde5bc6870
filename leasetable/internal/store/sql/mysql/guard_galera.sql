-- Changes the token of a name that a lease holds with a token. On Galera a guard changes the token and changes it back,
-- because rows that were only read are not compared with the commits of other nodes.
-- Parameters: ?1 difference, ?2 name, ?3 lease id, ?4 token.
-- Keeps I13.
UPDATE sqllock_lock SET token = token + ?1 WHERE name = UNHEX(CONVERT(?2 USING ascii)) AND lease_id = UNHEX(CONVERT(?3 USING ascii)) AND token = ?4
