-- Takes a name that had permits and has none now, if its token is still what it was when they were
-- looked at: the lease, the metadata, the name, the token. Whoever takes a permit raises it. The token comes back as the insert id.
UPDATE sqllock_lock
SET token = LAST_INSERT_ID(token + 1), lease_id = UNHEX(?), permits = NULL, exclusive_waiter_until = NULL,
    acquired_at = UTC_TIMESTAMP(6), released_at = NULL, metadata = UNHEX(?)
WHERE name = UNHEX(?) AND token = ? AND lease_id IS NULL
