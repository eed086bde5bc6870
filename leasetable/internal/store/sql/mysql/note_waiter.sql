-- Announces that another process waits for a name, if the name is held. If there are several waiters, the table keeps
-- the one that has waited longest. The announcement is advisory, so the statement does not wait for a row that another
-- session has locked: a transaction that the holder guards may last. (An UPDATE with such a subquery waits on MariaDB
-- 11.8.)
-- Parameters: ?1 name, ?2 waiter_since (microseconds since 1970), ?3 validity of the announcement in microseconds.
-- Keeps I36.
INSERT INTO sqllock_lock (name, token, acquired_at)
SELECT name, token, acquired_at
FROM (SELECT name, token, acquired_at FROM sqllock_lock WHERE name = UNHEX(?1) AND lease_id IS NOT NULL LIMIT 1 FOR UPDATE SKIP LOCKED) held
ON DUPLICATE KEY UPDATE
    waiter_since = IF(sqllock_lock.waiter_until > UTC_TIMESTAMP(6), LEAST(sqllock_lock.waiter_since, ?2), ?2),
    waiter_until = UTC_TIMESTAMP(6) + INTERVAL ?3 MICROSECOND
