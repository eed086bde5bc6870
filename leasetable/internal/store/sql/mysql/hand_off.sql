-- Hands a name, which a lease holds with a token, off to the next holders on the same lease, with the next tokens and
-- the metadata of the first of them. The insert id is the last of the tokens times 2, plus 1 if another process waits for
-- the name. token, from which it is computed, is assigned after it: MariaDB assigns from left to right, or all at once
-- with the mode SIMULTANEOUS_ASSIGNMENT.
-- Parameters: ?1 metadata, ?2 name, ?3 lease id, ?4 token, ?5 how many tokens.
-- Keeps I12, I24, I36.
UPDATE sqllock_lock
SET waiter_until = IF(LAST_INSERT_ID((token + ?5) * 2 + COALESCE(waiter_until > UTC_TIMESTAMP(6), 0)), waiter_until, NULL),
    token = token + ?5, acquired_at = UTC_TIMESTAMP(6), metadata = UNHEX(?1)
WHERE name = UNHEX(?2) AND lease_id = UNHEX(?3) AND token = ?4
