-- Releases a name if no other process waits for it: the name, the lease that holds it, the token. It is not kept. It is for MariaDB.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = UTC_TIMESTAMP(6), hold_until = NULL
WHERE name = UNHEX(?) AND lease_id = UNHEX(?) AND token = ? AND COALESCE(waiter_until <= UTC_TIMESTAMP(6), TRUE)
