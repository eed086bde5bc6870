-- Releases names as release_many.sql does, on MariaDB. It waits for no row: one that somebody has locked is an error, and
-- nothing is released. The names that it released, their tokens, and whether another process waits for them, are in @told, after
-- the statement's own number <number>. If there is one that another process waits for, the insert id is 1.
SET STATEMENT innodb_lock_wait_timeout = 0 FOR
UPDATE sqllock_lock FORCE INDEX (PRIMARY)
SET released_at = IF((@told := CONCAT_WS(' ', IF(@told LIKE '{number} %', @told, '{number}'), HEX(name), token,
                                         COALESCE(IF(waiter_until > UTC_TIMESTAMP(6), LAST_INSERT_ID(1), 0), 0))) IS NULL, NULL, UTC_TIMESTAMP(6)),
    hold_until = acquired_at + INTERVAL {keep} MICROSECOND, lease_id = NULL
WHERE (name, token) IN ({rows}) AND lease_id = {lease}
