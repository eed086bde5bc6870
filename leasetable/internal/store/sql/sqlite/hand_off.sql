UPDATE sqllock_lock
SET token = token + ?5, acquired_at = {now}, metadata = ?1
WHERE name = ?2 AND lease_id = ?3 AND token = ?4
RETURNING token * 2 + coalesce(waiter_until > {now}, 0)
