-- Acquires a free name as acquire.sql does, if it has a row. It does less than acquire.sql, and does not wait for a row
-- that a guard has locked. MySQL searches a range that has room for one name: there InnoDB skips a locked row whose
-- committed version is not free. On MariaDB a range would also wait for the row of the next name, so the statement
-- searches one name and fails at once if the row is locked.
-- Parameters: ?1 name, ?2 lease id, ?3 waiter_since of the waiter that acquires the name, ?4 metadata.
-- Keeps I6, I12, I14, I22, I30, I35.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
UPDATE sqllock_lock
SET token = LAST_INSERT_ID(token + 1), acquired_at = UTC_TIMESTAMP(6), released_at = NULL, metadata = UNHEX(?4),
    waiter_until = IF(waiter_since = ?3, NULL, waiter_until), lease_id = UNHEX(?2)
WHERE name /*M! = */ /*!80000 >= */ UNHEX(?1) AND name < UNHEX(CONCAT(?1, '00'))
    AND {free}
