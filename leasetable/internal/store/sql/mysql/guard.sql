-- Pins a name, as held by a lease with a token, until the transaction ends: a takeover waits for the row. metadata is
-- in no index: reading it locks the row itself, and not only an index entry, which a takeover may leave alone. MariaDB
-- also supports LOCK IN SHARE MODE. The transaction belongs to the caller: its session may limit the rows of a SELECT,
-- hence LIMIT, and may use a character set of two bytes, which UNHEX does not read, hence CONVERT. It returns 1, or 2
-- from a server that is read-only: a lock on a replica keeps nobody out.
-- Parameters: ?1 name, ?2 lease id, ?3 token.
-- Keeps I13, I14.
SELECT {writable} + 0 * LENGTH(metadata)
FROM sqllock_lock FORCE INDEX (PRIMARY)
WHERE name = UNHEX(CONVERT(?1 USING ascii)) AND lease_id = UNHEX(CONVERT(?2 USING ascii)) AND token = ?3
LIMIT 1
LOCK IN SHARE MODE
