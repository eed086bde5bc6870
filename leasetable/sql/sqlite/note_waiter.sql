-- Announces to the holder that another process waits for the name, if it is held. If there are several waiters, the
-- table keeps the one that has waited longest.
-- Parameters: ?1 name, ?2 since when it waits, in microseconds since 1970, ?3 for how many microseconds the
-- announcement is valid.
UPDATE sqllock_lock
SET waiter_since = CASE WHEN waiter_until > CAST(unixepoch('subsec') * 1000000 AS INTEGER) THEN min(waiter_since, ?2) ELSE ?2 END,
    waiter_until = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + ?3
WHERE name = ?1 AND lease_id IS NOT NULL
