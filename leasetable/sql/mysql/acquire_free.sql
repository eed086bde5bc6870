-- Takes a name for a lease as acquire.sql does, if it has a row: the metadata, since when the one was noted to wait that
-- takes it, the lease, and the name twice. It does less than acquire.sql, and does not wait for a row, either,
-- that a guard has locked. In MySQL the row is looked up as a range that has room for one name, of which InnoDB skips a
-- row whose committed version is not free. MariaDB would wait for the row of the next name, too; it answers at once
-- with an error.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
UPDATE sqllock_lock
SET token = LAST_INSERT_ID(token + 1), acquired_at = UTC_TIMESTAMP(6), released_at = NULL, metadata = UNHEX(?),
    waiter_until = IF(waiter_since = ?, NULL, waiter_until), lease_id = UNHEX(?)
WHERE name /*M! = */ /*!80000 >= */ UNHEX(?) AND name < UNHEX(CONCAT(?, '00'))
    AND lease_id IS NULL AND permits IS NULL AND COALESCE(hold_until <= UTC_TIMESTAMP(6), TRUE)
