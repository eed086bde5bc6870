-- Begins to take the permits of a name away from all who have one, if its token is still what it was when
-- they were looked at: the name, the token. It rises: who has just seen it takes no permit. notify_permits.sql and
-- clear_permits.sql follow in the same transaction.
UPDATE sqllock_lock
SET token = token + 1, released_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
WHERE name = ?1 AND token = ?2 AND lease_id IS NULL
