-- Pins a name as held by a lease with a token until the transaction ends: a takeover has to wait
-- for the row. metadata is in no index: reading it locks the row itself, and not only an entry of
-- an index, which a takeover may leave alone. LOCK IN SHARE MODE is what MariaDB knows, too.
-- The transaction is somebody else's: its session may have limited the rows of a SELECT, and UNHEX reads no characters of two bytes.
SELECT 1 + 0 * LENGTH(metadata)
FROM sqllock_lock FORCE INDEX (PRIMARY)
WHERE name = UNHEX(CONVERT(? USING ascii)) AND lease_id = UNHEX(CONVERT(? USING ascii)) AND token = ?
LIMIT 1
LOCK IN SHARE MODE
