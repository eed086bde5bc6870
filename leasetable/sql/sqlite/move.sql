-- Moves the name ?2, held with the token ?3, from the lease ?4 to the lease ?1. It may be run again: what is
-- on its new lease stays there.
UPDATE sqllock_lock
SET lease_id = ?1
WHERE name = ?2 AND token = ?3 AND lease_id IN (?4, ?1)
RETURNING token
