-- Returns a row unless another session has locked the row of a lease. A lease without a row counts as unlocked: its id
-- is never inserted again.
-- Parameters: $1 lease id.
SELECT 1 WHERE NOT EXISTS (SELECT FROM sqllock_lease WHERE id = $1)
UNION ALL
SELECT 1 FROM (
  SELECT FROM sqllock_lease l, pg_catalog.set_config('synchronous_commit', 'off', true) WHERE l.id = $1 FOR UPDATE OF l SKIP LOCKED
) free
