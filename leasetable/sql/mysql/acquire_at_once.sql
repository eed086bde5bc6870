-- Takes those of the names that are free, and neither kept after their release nor in permits, for the lease
-- <lease> with the metadata <metadata>: <match> are they, with their tokens if these are known. It is for MariaDB, and waits for no row: one that
-- somebody has locked is an error, and nothing is taken. The names that it took, and their tokens, are in @told, after the statement's
-- own number <number>.
SET STATEMENT innodb_lock_wait_timeout = 0 FOR
UPDATE sqllock_lock FORCE INDEX (PRIMARY)
SET released_at = IF((@told := CONCAT_WS(' ', IF(@told LIKE '{number} %', @told, '{number}'), HEX(name), token + 1, 0)) IS NULL, NULL, NULL),
    token = token + 1, acquired_at = UTC_TIMESTAMP(6), metadata = {metadata}, lease_id = {lease}
WHERE {match} AND lease_id IS NULL AND permits IS NULL AND COALESCE(hold_until <= UTC_TIMESTAMP(6), TRUE)
