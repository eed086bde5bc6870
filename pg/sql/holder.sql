-- Returns the holder of the key $1 and the number of waiters. pg_locks shows a bigint key as its two halves, and $2 is
-- 1, for a pair of int keys $2 is 2. $3 is the database. For sessions of other roles the address and the start are not
-- shown, unless the role may read all statistics. A prepared transaction has no pid. The view pg_stat_activity is not
-- used: it reads other tables as well, and a full table of locks would not let it. A waiter is in the queue of the lock
-- or of its gate, or has the gate exclusively between two slices, see wait.sql. A holder that has not given the gate back
-- yet is none.
-- Keeps I48.
WITH l AS MATERIALIZED (
  SELECT pid, granted, mode, key = $1 AS itself
  FROM pg_locks, LATERAL (SELECT (classid::bigint << 32) | objid::bigint AS key) k
  WHERE locktype = 'advisory'
    AND database = $3::bigint::oid
    AND key IN ($1::bigint, hashtextextended($1::bigint::text, 1))
    AND objsubid = $2::int
)
SELECT l.mode = 'ShareLock', coalesce(l.pid, 0), coalesce(a.application_name, ''), coalesce(host(a.client_addr), ''), a.backend_start,
       (SELECT count(*)
        FROM (SELECT pid FROM l GROUP BY pid
              HAVING NOT bool_and(granted) OR NOT bool_or(itself) AND bool_or(mode = 'ExclusiveLock')) waiters)
FROM l
LEFT JOIN pg_stat_get_activity(coalesce(l.pid, 0)) a ON true
WHERE l.granted AND l.itself
LIMIT 1
