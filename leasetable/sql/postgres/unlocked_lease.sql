-- Finds something unless somebody has the row of the lease $1 locked: there will not be another one.
SELECT 1 WHERE NOT EXISTS (SELECT FROM sqllock_lease WHERE id = $1)
UNION ALL
SELECT 1 FROM (
  SELECT FROM sqllock_lease l, set_config('synchronous_commit', 'off', true) WHERE l.id = $1 FOR UPDATE OF l SKIP LOCKED
) free
