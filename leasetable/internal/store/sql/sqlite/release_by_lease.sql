UPDATE sqllock_lock
SET lease_id = NULL, released_at = {now}, hold_until = acquired_at + ?3
WHERE name = ?1 AND lease_id = ?2
