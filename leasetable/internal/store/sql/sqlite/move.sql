UPDATE sqllock_lock
SET lease_id = ?1
WHERE name = ?2 AND token = ?3 AND lease_id IN (?4, ?1)
RETURNING token
