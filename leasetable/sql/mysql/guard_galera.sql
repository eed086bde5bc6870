-- Changes the token of a name that a lease holds with a token. On Galera a guard changes the token and changes it back,
-- because rows that were only read are not compared with the commits of other nodes.
-- Parameters: difference, name, lease id, token.
UPDATE sqllock_lock SET token = token + ? WHERE name = UNHEX(CONVERT(? USING ascii)) AND lease_id = UNHEX(CONVERT(? USING ascii)) AND token = ?
