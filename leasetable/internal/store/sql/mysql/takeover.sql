-- Takes a name over from a lease that is known to be over. It withdraws the announcement of the waiter that acquires
-- the name. The insert id is the token. The row of the lease is looked for again: a replica that lags may have shown
-- the name without it.
-- Parameters: ?1 new lease id, ?2 name, ?3 old lease id, ?4 waiter_since of that waiter, ?5 metadata.
-- Keeps I6, I8, I9, I12.
UPDATE sqllock_lock
SET token = LAST_INSERT_ID(token + 1), lease_id = UNHEX(?1), acquired_at = UTC_TIMESTAMP(6), released_at = NULL, metadata = UNHEX(?5),
    waiter_until = IF(waiter_since = ?4, NULL, waiter_until)
WHERE name = UNHEX(?2) AND lease_id = UNHEX(?3) AND NOT EXISTS (SELECT 1 FROM sqllock_lease WHERE id = UNHEX(?3))
