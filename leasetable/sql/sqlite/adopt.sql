-- Takes for the lease ?1 the name ?4, which the lease ?5 holds with the token ?6, with the next token ?2. The
-- metadata is ?3, or stays if that is null. It may be run again: what has that token on that lease stays so.
UPDATE sqllock_lock
SET token = ?2, lease_id = ?1, acquired_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), released_at = NULL, metadata = coalesce(?3, metadata)
WHERE name = ?4 AND (lease_id = ?5 AND token = ?6 OR lease_id = ?1 AND token = ?2)
RETURNING token
