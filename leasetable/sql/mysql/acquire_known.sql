-- Takes a name as acquire_free.sql does, unless it was kept before: the lease, the metadata, the name, and the token that it is known to
-- have. It is for MariaDB.
SET STATEMENT innodb_lock_wait_timeout = 0 FOR
UPDATE sqllock_lock
SET token = token + 1, lease_id = UNHEX(?), acquired_at = UTC_TIMESTAMP(6), released_at = NULL, metadata = UNHEX(?)
WHERE name = UNHEX(?) AND token = ? AND lease_id IS NULL AND permits IS NULL AND hold_until IS NULL
