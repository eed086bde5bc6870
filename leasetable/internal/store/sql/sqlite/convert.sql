UPDATE sqllock_lock
SET token = token + 1, lease_id = ?1, permits = NULL, exclusive_waiter_until = NULL, acquired_at = {now}, released_at = NULL, metadata = ?2
WHERE name = ?3 AND token = ?4 AND lease_id IS NULL
RETURNING token
