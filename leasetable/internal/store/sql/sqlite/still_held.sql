-- Reads which of the given names a lease holds, as a whole or by a share or permit, and their tokens.
-- Parameters: ?1 JSON list of the names (each in hex, with a number that is not used), ?2 lease id.
-- Keeps I20.
SELECT name, token, false AS permit
FROM sqllock_lock
WHERE name IN (SELECT unhex(value->>0) FROM json_each(?1)) AND lease_id = ?2
UNION ALL
SELECT name, token, true
FROM sqllock_permit
WHERE name IN (SELECT unhex(value->>0) FROM json_each(?1)) AND lease_id = ?2
