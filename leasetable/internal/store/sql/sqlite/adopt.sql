UPDATE sqllock_lock
SET token = ?2, lease_id = ?1, acquired_at = {now}, released_at = NULL, metadata = coalesce(?3, metadata)
WHERE name = ?4 AND (lease_id = ?5 AND token = ?6 OR lease_id = ?1 AND token = ?2)
RETURNING token
