-- Pins a share or permit until the transaction ends: it is not cleared before. acquired_at is in no index, and
-- the result says whether the server is read-only; see guard.sql.
-- Parameters: ?1 name, ?2 lease id, ?3 token.
-- Keeps I13.
SELECT {writable} + 0 * YEAR(acquired_at)
FROM sqllock_permit FORCE INDEX (PRIMARY)
WHERE name = UNHEX(CONVERT(?1 USING ascii)) AND lease_id = UNHEX(CONVERT(?2 USING ascii)) AND token = ?3
LIMIT 1
LOCK IN SHARE MODE
