UPDATE sqllock_lock
SET lease_id = NULL, released_at = {now}, hold_until = acquired_at + ?4
WHERE name = ?1 AND lease_id = ?2 AND token = ?3
RETURNING coalesce(waiter_until > {now}, 0)
