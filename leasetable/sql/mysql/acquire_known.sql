-- Acquires a free name whose token is known, as acquire_free.sql does, if the last release set no minimum hold. MariaDB
-- only.
-- Parameters: lease id, metadata, name, token.
SET STATEMENT innodb_lock_wait_timeout = 0 FOR
UPDATE sqllock_lock
SET token = token + 1, lease_id = UNHEX(?), acquired_at = UTC_TIMESTAMP(6), released_at = NULL, metadata = UNHEX(?)
WHERE name = UNHEX(?) AND token = ? AND lease_id IS NULL AND permits IS NULL AND hold_until IS NULL
