-- Releases a name as held by a lease with a token. The row stays, for its token.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = UTC_TIMESTAMP(6)
WHERE name = UNHEX(?) AND lease_id = UNHEX(?) AND token = ?
