-- Begins to take all shares or permits of a name away from their holders, if its token is still the one that was read
-- with them. The token is bumped: no share or permit is acquired any more on the condition that the name has the old
-- token. notify_permits.sql and clear_permits.sql follow in the same transaction.
-- Parameters: ?1 name, ?2 token.
-- Keeps I12, I34.
UPDATE sqllock_lock
SET token = token + 1, released_at = {now}
WHERE name = ?1 AND token = ?2 AND lease_id IS NULL
