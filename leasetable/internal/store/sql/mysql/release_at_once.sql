-- MariaDB only: releases names as release_many.sql does, and waits for no row lock. If another session has locked a
-- row, the statement fails, and nothing is released. It notes the released names, their tokens, and whether another
-- process waits for them, in @told, after its own number. The insert id is 1 if another process waits for one of them.
-- Placeholders: <rows> the names with their tokens, <lease>, <keep> the minimum hold in microseconds or NULL, <number>
-- the number of the statement.
-- Keeps I6.
SET STATEMENT innodb_lock_wait_timeout = 0 FOR
UPDATE sqllock_lock FORCE INDEX (PRIMARY)
SET released_at = IF((@told := CONCAT_WS(' ', IF(@told LIKE '{number} %', @told, '{number}'), HEX(name), token,
                                         COALESCE(IF(waiter_until > UTC_TIMESTAMP(6), LAST_INSERT_ID(1), 0), 0))) IS NULL, NULL, UTC_TIMESTAMP(6)),
    hold_until = acquired_at + INTERVAL {keep} MICROSECOND, lease_id = NULL
WHERE (name, token) IN ({rows}) AND lease_id = {lease}
