UPDATE sqllock_lock
SET lease_id = NULL, released_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), hold_until = acquired_at + ?3
WHERE name = ?1 AND lease_id = ?2
