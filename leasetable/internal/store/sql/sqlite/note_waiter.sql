-- Announces that another process waits for a name, if the name is held. If there are several waiters, the table keeps
-- the one that has waited longest.
-- Parameters: ?1 name, ?2 waiter_since (microseconds since 1970), ?3 validity of the announcement in microseconds.
-- Keeps I36.
UPDATE sqllock_lock
SET waiter_since = CASE WHEN waiter_until > CAST(unixepoch('subsec') * 1000000 AS INTEGER) THEN min(waiter_since, ?2) ELSE ?2 END,
    waiter_until = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + ?3
WHERE name = ?1 AND lease_id IS NOT NULL
