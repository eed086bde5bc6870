-- Releases a name that a lease holds with a token, if no other process waits for it. It sets no minimum hold. MariaDB
-- only.
-- Parameters: name, lease id, token.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = UTC_TIMESTAMP(6), hold_until = NULL
WHERE name = UNHEX(?1) AND lease_id = UNHEX(?2) AND token = ?3 AND COALESCE(waiter_until <= UTC_TIMESTAMP(6), TRUE)
