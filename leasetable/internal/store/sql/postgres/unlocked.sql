-- Returns a row if the name has one that no other session has locked.
-- Parameters: $1 name.
SELECT 1
FROM sqllock_lock k, pg_catalog.set_config('synchronous_commit', 'off', true)
WHERE k.name = $1
FOR NO KEY UPDATE OF k SKIP LOCKED
