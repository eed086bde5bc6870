-- Acquires the whole of a name that had shares or permits and has none left, if its token is still the one that was
-- read with them: every share or permit bumps the token. The insert id is the token.
-- Parameters: ?1 lease id, ?2 metadata, ?3 name, ?4 token.
-- Keeps I6, I8, I12, I30.
UPDATE sqllock_lock
SET token = LAST_INSERT_ID(token + 1), lease_id = UNHEX(?1), permits = NULL, exclusive_waiter_until = NULL,
    acquired_at = UTC_TIMESTAMP(6), released_at = NULL, metadata = UNHEX(?2)
WHERE name = UNHEX(?3) AND token = ?4 AND lease_id IS NULL
