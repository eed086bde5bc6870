INSERT INTO sqllock_lock (name, token, acquired_at)
SELECT name, token, acquired_at
FROM (SELECT name, token, acquired_at FROM sqllock_lock WHERE name = UNHEX(?1) AND waiter_since = ?2 LIMIT 1 FOR UPDATE SKIP LOCKED) noted
ON DUPLICATE KEY UPDATE waiter_until = NULL
