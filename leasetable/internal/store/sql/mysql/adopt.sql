-- The insert id is the token.
UPDATE sqllock_lock
SET lease_id = UNHEX(?1), token = LAST_INSERT_ID(?2), metadata = COALESCE(UNHEX(?3), metadata), acquired_at = UTC_TIMESTAMP(6), released_at = NULL
WHERE name = UNHEX(?4) AND (lease_id = UNHEX(?5) AND token = ?6 OR lease_id = UNHEX(?1) AND token = ?2)
