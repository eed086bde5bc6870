-- Acquires a free name whose token is known, as acquire_free.sql does, if the last release set no minimum hold. MariaDB
-- only.
-- Parameters: lease id, metadata, name, token.
SET STATEMENT innodb_lock_wait_timeout = 0 FOR
UPDATE sqllock_lock
SET token = token + 1, lease_id = UNHEX(?1), acquired_at = UTC_TIMESTAMP(6), released_at = NULL, metadata = UNHEX(?2)
WHERE name = UNHEX(?3) AND token = ?4 AND lease_id IS NULL AND permits IS NULL AND hold_until IS NULL
