-- Raises the token of the name ?2 for another permit, of ?1 in all, if the name is as it was seen: with
-- the token ?3 and held by the lease ?4, which is over, or none if that is null. Every acquisition raises the token, so
-- nobody has taken a permit since. add_permit.sql follows in the same transaction.
UPDATE sqllock_lock
SET token = token + 1, lease_id = NULL, permits = ?1, acquired_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), released_at = NULL, hold_until = NULL
WHERE name = ?2 AND token = ?3 AND lease_id IS ?4
