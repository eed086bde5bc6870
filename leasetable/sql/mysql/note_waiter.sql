-- Says that somebody in another process waits for a name, if that is held: the name; since when, in microseconds
-- since 1970, and that again; for how many microseconds that is to be believed. Of those who
-- wait the one stays noted who has waited longest. It is a hint, and does not wait
-- for a row that somebody has locked: a transaction that its holder guards may last. (An UPDATE by such a
-- subquery waits on MariaDB 11.8.)
INSERT INTO sqllock_lock (name, token, acquired_at)
SELECT name, token, acquired_at
FROM (SELECT name, token, acquired_at FROM sqllock_lock WHERE name = UNHEX(?) AND lease_id IS NOT NULL LIMIT 1 FOR UPDATE SKIP LOCKED) held
ON DUPLICATE KEY UPDATE
    waiter_since = IF(sqllock_lock.waiter_until > UTC_TIMESTAMP(6), LEAST(sqllock_lock.waiter_since, ?), ?),
    waiter_until = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
