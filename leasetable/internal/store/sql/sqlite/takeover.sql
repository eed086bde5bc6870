UPDATE sqllock_lock
SET token = token + 1, lease_id = ?1, acquired_at = {now}, released_at = NULL, metadata = ?5,
    waiter_until = CASE WHEN waiter_since = ?4 THEN NULL ELSE waiter_until END
WHERE name = ?2 AND lease_id = ?3 AND NOT EXISTS (SELECT 1 FROM sqllock_lease WHERE id = ?3)
RETURNING token
