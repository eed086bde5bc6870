UPDATE sqllock_lock
SET waiter_since = CASE WHEN waiter_until > CAST(unixepoch('subsec') * 1000000 AS INTEGER) THEN min(waiter_since, ?2) ELSE ?2 END,
    waiter_until = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + ?3
WHERE name = ?1 AND lease_id IS NOT NULL
