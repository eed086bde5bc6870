UPDATE sqllock_lock
SET metadata = ?1
WHERE name = ?2 AND lease_id = ?3 AND token = ?4
RETURNING token
