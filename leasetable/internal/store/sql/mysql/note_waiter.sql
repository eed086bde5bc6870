-- An UPDATE with such a subquery waits on MariaDB 11.8.
INSERT INTO sqllock_lock (name, token, acquired_at)
SELECT name, token, acquired_at
FROM (SELECT name, token, acquired_at FROM sqllock_lock WHERE name = UNHEX(?1) AND lease_id IS NOT NULL LIMIT 1 FOR UPDATE SKIP LOCKED) held
ON DUPLICATE KEY UPDATE
    waiter_since = IF(sqllock_lock.waiter_until > UTC_TIMESTAMP(6), LEAST(sqllock_lock.waiter_since, ?2), ?2),
    waiter_until = UTC_TIMESTAMP(6) + INTERVAL ?3 MICROSECOND
