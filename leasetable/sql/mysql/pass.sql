-- Passes on a name, which a lease holds with a token, to the next holder on the same lease, with the
-- next token and its metadata: the metadata, the name, the lease, the token. The next one comes back as the insert id, doubled, and 1
-- more if another process waits for the name. It is assigned from left to right.
UPDATE sqllock_lock
SET token = token + 1, acquired_at = UTC_TIMESTAMP(6), metadata = UNHEX(?),
    wanted_until = IF(LAST_INSERT_ID(token * 2 + COALESCE(wanted_until > UTC_TIMESTAMP(6), 0)), wanted_until, NULL)
WHERE name = UNHEX(?) AND lease_id = UNHEX(?) AND token = ?
