-- The insert id is the token.
UPDATE sqllock_lock
SET lease_id = UNHEX(?1), token = LAST_INSERT_ID(token)
WHERE name = UNHEX(?2) AND token = ?3 AND lease_id IN (UNHEX(?4), UNHEX(?1))
