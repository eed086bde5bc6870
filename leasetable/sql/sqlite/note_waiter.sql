-- Says that somebody in another process waits for the name ?1, since ?2 in microseconds since 1970, if
-- the name is held. Of those who wait the one stays noted who has waited longest.
UPDATE sqllock_lock
SET waiter_since = CASE WHEN waiter_until > CAST(unixepoch('subsec') * 1000000 AS INTEGER) THEN min(waiter_since, ?2) ELSE ?2 END,
    waiter_until = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + ?3
WHERE name = ?1 AND lease_id IS NOT NULL
