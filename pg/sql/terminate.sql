-- Ends the session $4 if it holds the key $1, $2 of the database $3 (see holder.sql). The check and the end are one
-- statement, so that the session of a later holder is not hit.
-- Keeps I50.
SELECT pg_terminate_backend(l.pid)
FROM pg_locks l
WHERE l.locktype = 'advisory'
  AND l.granted
  AND l.database = $3::bigint::oid
  AND l.classid = (($1::bigint >> 32) & 4294967295)::oid
  AND l.objid = ($1::bigint & 4294967295)::oid
  AND l.objsubid = $2::int
  AND l.pid = $4
LIMIT 1
