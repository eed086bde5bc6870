-- Passes on the name ?1, which the lease ?2 holds with the token ?3, to the next holder on the same
-- lease, with the next token, which it returns doubled, and 1 more if another process waits for the name.
UPDATE sqllock_lock
SET token = token + 1, acquired_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
WHERE name = ?1 AND lease_id = ?2 AND token = ?3
RETURNING token * 2 + coalesce(wanted_until > CAST(unixepoch('subsec') * 1000000 AS INTEGER), 0)
