-- Finds something unless somebody has the permit of the name $1 with the token $2 locked: there will not be another one.
SELECT 1 WHERE NOT EXISTS (SELECT FROM sqllock_permit WHERE name = $1 AND token = $2)
UNION ALL
SELECT 1 FROM (
  SELECT FROM sqllock_permit p, set_config('synchronous_commit', 'off', true) WHERE p.name = $1 AND p.token = $2 FOR UPDATE OF p SKIP LOCKED
) free
