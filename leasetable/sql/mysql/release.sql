-- Releases a name, and keeps it until so many microseconds after it was acquired, if that is not
-- null: the microseconds, the name, the lease that holds it, the token. The row stays, for its token.
-- Whether another process waits for the name comes back as the insert id.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = UTC_TIMESTAMP(6), hold_until = acquired_at + INTERVAL ? MICROSECOND,
    waiter_until = IF(LAST_INSERT_ID(COALESCE(waiter_until > UTC_TIMESTAMP(6), 0)), waiter_until, NULL)
WHERE name = UNHEX(?) AND lease_id = UNHEX(?) AND token = ?
