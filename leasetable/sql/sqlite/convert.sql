-- Takes for the lease ?1 the name ?2, which had places and has none now, if its token is still ?3, as it
-- was when they were looked at: whoever takes a place raises it.
UPDATE sqllock_lock
SET token = token + 1, lease_id = ?1, places = NULL, exclusive_wanted_until = NULL, acquired_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), released_at = NULL
WHERE name = ?2 AND token = ?3 AND lease_id IS NULL
RETURNING token
