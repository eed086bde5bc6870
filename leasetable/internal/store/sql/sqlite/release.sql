UPDATE sqllock_lock
SET lease_id = NULL, released_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), hold_until = acquired_at + ?4
WHERE name = ?1 AND lease_id = ?2 AND token = ?3
RETURNING coalesce(waiter_until > CAST(unixepoch('subsec') * 1000000 AS INTEGER), 0)
