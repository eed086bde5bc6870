UPDATE sqllock_lock
SET waiter_since = CASE WHEN waiter_until > {now} THEN min(waiter_since, ?2) ELSE ?2 END,
    waiter_until = {now} + ?3
WHERE name = ?1 AND lease_id IS NOT NULL
