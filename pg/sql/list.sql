-- Returns every advisory lock of the database $1 that somebody holds. A pair of int keys has objsubid 2. The gates of
-- other locks, see wait.sql, are left out, but the waiters at a gate, and one that has it, count as waiters for its lock, as
-- in holder.sql. The seats of waiters, see package pgqueue for the seeds, are left out, too.
WITH every AS MATERIALIZED (
  SELECT pid, granted, mode, objsubid, (classid::bigint << 32) | objid::bigint AS key
  FROM pg_locks
  WHERE locktype = 'advisory'
    AND database = $1::bigint::oid
), l AS MATERIALIZED (
  SELECT DISTINCT e.*, coalesce(lock.key, e.key) AS of, lock.key IS NOT NULL AS gate
  FROM every e
  LEFT JOIN every lock ON lock.objsubid = e.objsubid AND hashtextextended(lock.key::text, 1) = e.key
), waiting AS (
  SELECT of, objsubid, count(*) AS n
  FROM (SELECT of, objsubid, pid FROM l GROUP BY of, objsubid, pid
        HAVING NOT bool_and(granted) OR bool_and(gate) AND bool_or(mode = 'ExclusiveLock')) waiters
  GROUP BY of, objsubid
), seats AS (
  SELECT DISTINCT hashtextextended(l.of::text, i) AS key
  FROM (SELECT DISTINCT of FROM l WHERE NOT granted OR gate) l, generate_series(2::bigint, 129::bigint) i
)
SELECT l.key, l.objsubid = 2, l.mode = 'ShareLock',
       coalesce(l.pid, 0), coalesce(a.application_name, ''), coalesce(host(a.client_addr), ''), a.backend_start,
       coalesce(w.n, 0)
FROM l
LEFT JOIN pg_stat_get_activity(coalesce(l.pid, 0)) a ON true
LEFT JOIN waiting w ON (w.of, w.objsubid) = (l.key, l.objsubid)
LEFT JOIN seats s ON s.key = l.key AND l.objsubid = 1
WHERE l.granted AND NOT l.gate AND s.key IS NULL
ORDER BY 1, 2, 4, 3
