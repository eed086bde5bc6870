-- Returns a row unless another session has locked a share or permit. One without a row counts as unlocked: its token is
-- never used again.
-- Parameters: $1 name, $2 token.
SELECT 1 WHERE NOT EXISTS (SELECT FROM sqllock_permit WHERE name = $1 AND token = $2)
UNION ALL
SELECT 1 FROM (
  SELECT FROM sqllock_permit p, pg_catalog.set_config('synchronous_commit', 'off', true) WHERE p.name = $1 AND p.token = $2 FOR UPDATE OF p SKIP LOCKED
) free
