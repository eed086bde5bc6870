-- Takes a name from a lease that is known to be over: the new lease, the metadata, since when the
-- one was noted to wait that takes it, the name, the old lease.
-- The token comes back as the insert id.
UPDATE sqllock_lock
SET token = LAST_INSERT_ID(token + 1), lease_id = UNHEX(?), acquired_at = UTC_TIMESTAMP(6), released_at = NULL, metadata = UNHEX(?),
    waiter_until = IF(waiter_since = ?, NULL, waiter_until)
WHERE name = UNHEX(?) AND lease_id = UNHEX(?)
