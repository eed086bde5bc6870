-- Who holds the key $1, and how many wait for it. A bigint key shows in pg_locks as its two
-- halves, and $2 is 1; of a pair of int keys $2 is 2. Of other roles' sessions no address and no start is shown,
-- unless one may read all of it. A prepared transaction has no pid.
WITH l AS MATERIALIZED (
  SELECT pid, granted
  FROM pg_locks
  WHERE locktype = 'advisory'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid = (($1::bigint >> 32) & 4294967295)::oid
    AND objid = ($1::bigint & 4294967295)::oid
    AND objsubid = $2::int
)
SELECT coalesce(l.pid, 0), coalesce(a.application_name, ''), coalesce(host(a.client_addr), ''), a.backend_start,
       (SELECT count(*) FROM l WHERE NOT granted)
FROM l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.granted
LIMIT 1
