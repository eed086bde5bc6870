-- Takes a name for a lease from the lease that holds it with a token: the new lease, the next token, the
-- metadata, or null for what it was, the name, the old lease, its token, the new lease and the next
-- token again. It may be run again: what has that token on that lease stays so. The token comes back as the
-- insert id.
UPDATE sqllock_lock
SET lease_id = UNHEX(?), token = LAST_INSERT_ID(?), metadata = COALESCE(UNHEX(?), metadata), acquired_at = UTC_TIMESTAMP(6), released_at = NULL
WHERE name = UNHEX(?) AND (lease_id = UNHEX(?) AND token = ? OR lease_id = UNHEX(?) AND token = ?)
