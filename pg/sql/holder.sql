-- Who holds the key $1. A bigint key shows in pg_locks as its two halves, and objsubid 1.
-- Other users' activity shows only their pid, unless one may read all of it.
SELECT l.pid, coalesce(a.application_name, ''), coalesce(host(a.client_addr), ''), a.backend_start
FROM pg_locks l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory'
  AND l.granted
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.classid = (($1::bigint >> 32) & 4294967295)::oid
  AND l.objid = ($1::bigint & 4294967295)::oid
  AND l.objsubid = 1
LIMIT 1
