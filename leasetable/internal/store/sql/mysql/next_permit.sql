UPDATE sqllock_lock
SET token = token + 1, lease_id = NULL, permits = ?1, acquired_at = UTC_TIMESTAMP(6), released_at = NULL, hold_until = NULL
WHERE name = UNHEX(?2) AND token = ?3 AND lease_id <=> UNHEX(?4) AND NOT EXISTS (SELECT 1 FROM sqllock_lease WHERE id = UNHEX(?4))
