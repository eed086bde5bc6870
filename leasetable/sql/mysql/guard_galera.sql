-- Changes the token of a name that a lease holds with a token: by how much, the name, the lease, the
-- token. On Galera a guard changes it and changes it back, for what was only read is not compared with
-- what other nodes commit.
UPDATE sqllock_lock SET token = token + ? WHERE name = UNHEX(CONVERT(? USING ascii)) AND lease_id = UNHEX(CONVERT(? USING ascii)) AND token = ?
