-- Ends the session $3 if it holds the key $1, $2 (see holder.sql): looking and ending are one statement, so that the
-- session of a later holder is not hit.
SELECT pg_terminate_backend(l.pid)
FROM pg_locks l
WHERE l.locktype = 'advisory'
  AND l.granted
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.classid = (($1::bigint >> 32) & 4294967295)::oid
  AND l.objid = ($1::bigint & 4294967295)::oid
  AND l.objsubid = $2::int
  AND l.pid = $3
LIMIT 1
