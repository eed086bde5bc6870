-- Every advisory lock of the database $1 that somebody holds. A pair of int keys has objsubid 2.
WITH l AS MATERIALIZED (
  SELECT pid, granted, mode, classid, objid, objsubid
  FROM pg_locks
  WHERE locktype = 'advisory'
    AND database = $1::bigint::oid
), waiting AS (
  SELECT classid, objid, objsubid, count(*) AS n
  FROM l
  WHERE NOT granted
  GROUP BY classid, objid, objsubid
)
SELECT (l.classid::bigint << 32) | l.objid::bigint, l.objsubid = 2, l.mode = 'ShareLock',
       coalesce(l.pid, 0), coalesce(a.application_name, ''), coalesce(host(a.client_addr), ''), a.backend_start,
       coalesce(w.n, 0)
FROM l
LEFT JOIN pg_stat_get_activity(coalesce(l.pid, 0)) a ON true
LEFT JOIN waiting w ON (w.classid, w.objid, w.objsubid) = (l.classid, l.objid, l.objsubid)
WHERE l.granted
ORDER BY 1, 2, 4, 3
