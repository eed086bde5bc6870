-- Releases the name ?1 as held by the lease ?2 with the token ?3, and keeps it until ?4
-- microseconds after it was acquired, if that is not null. The row stays, for its token. It returns
-- whether another process waits for the name.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), hold_until = acquired_at + ?4
WHERE name = ?1 AND lease_id = ?2 AND token = ?3
RETURNING coalesce(waiter_until > CAST(unixepoch('subsec') * 1000000 AS INTEGER), 0)
