-- Finds the row of the name $1 unless somebody has it locked.
SELECT 1
FROM sqllock_lock k, set_config('synchronous_commit', 'off', true)
WHERE k.name = $1
FOR NO KEY UPDATE OF k SKIP LOCKED
