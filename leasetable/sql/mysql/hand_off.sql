-- Passes on a name, which a lease holds with a token, to the next holder on the same lease, with the
-- next token and its metadata: the metadata, the name, the lease, the token. The next one comes back as the insert id, doubled, and 1
-- more if another process waits for the name. What it is counted from is assigned after it: MariaDB assigns from left to right, or all
-- at once with the mode SIMULTANEOUS_ASSIGNMENT.
UPDATE sqllock_lock
SET waiter_until = IF(LAST_INSERT_ID((token + 1) * 2 + COALESCE(waiter_until > UTC_TIMESTAMP(6), 0)), waiter_until, NULL),
    token = token + 1, acquired_at = UTC_TIMESTAMP(6), metadata = UNHEX(?)
WHERE name = UNHEX(?) AND lease_id = UNHEX(?) AND token = ?
