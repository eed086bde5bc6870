UPDATE sqllock_lock
SET token = token + 1, released_at = UTC_TIMESTAMP(6)
WHERE name = UNHEX(?1) AND token = ?2 AND lease_id IS NULL
