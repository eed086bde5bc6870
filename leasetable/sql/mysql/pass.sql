-- Passes on a name, which a lease holds with a token, to the next holder on the same lease, with the
-- next token: the name, the lease, the token. The next one comes back as the insert id.
UPDATE sqllock_lock
SET token = LAST_INSERT_ID(token + 1), acquired_at = UTC_TIMESTAMP(6)
WHERE name = UNHEX(?) AND lease_id = UNHEX(?) AND token = ?
