-- MariaDB only: acquires the free names among <match> and waits for no row lock. If another session has locked a row,
-- the statement fails, and nothing is acquired. It notes the acquired names and their tokens in @told, after its own
-- number.
-- Placeholders: <match> the names, with their tokens if these are known, <lease>, <metadata>, <number> the number of
-- the statement.
-- Keeps I6, I12, I22, I30, I35, I37.
SET STATEMENT innodb_lock_wait_timeout = 0 FOR
UPDATE sqllock_lock FORCE INDEX (PRIMARY)
SET released_at = IF((@told := CONCAT_WS(' ', IF(@told LIKE '{number} %', @told, '{number}'), HEX(name), token + 1, 0)) IS NULL, NULL, NULL),
    token = token + 1, acquired_at = UTC_TIMESTAMP(6), metadata = {metadata}, lease_id = {lease}
WHERE {match} AND {free}
