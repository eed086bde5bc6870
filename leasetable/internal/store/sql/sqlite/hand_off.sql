UPDATE sqllock_lock
SET token = token + ?5, acquired_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), metadata = ?1
WHERE name = ?2 AND lease_id = ?3 AND token = ?4
RETURNING token * 2 + coalesce(waiter_until > CAST(unixepoch('subsec') * 1000000 AS INTEGER), 0)
