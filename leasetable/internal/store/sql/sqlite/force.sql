-- Takes a name away from the lease that holds it with the given token. If the lease id is NULL, the name is in its
-- minimum hold. The token is bumped, so that leftovers of the holder can be recognized. notify_lease.sql follows in the
-- same transaction.
-- Parameters: ?1 name, ?2 lease id (or NULL), ?3 token.
-- Keeps I6, I12.
UPDATE sqllock_lock
SET lease_id = NULL, token = token + 1, released_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), hold_until = NULL
WHERE name = ?1 AND lease_id IS ?2 AND token = ?3
