-- Raises the token of a name for another place, if the name is as it was seen: how many places there
-- are, the name, its token, and the lease that holds it and is over, or null for none. Every acquisition raises the
-- token, so nobody has taken a place since. add_place.sql follows in the same transaction.
UPDATE sqllock_lock
SET token = token + 1, lease_id = NULL, places = ?, acquired_at = UTC_TIMESTAMP(6), released_at = NULL, kept_until = NULL
WHERE name = UNHEX(?) AND token = ? AND lease_id <=> UNHEX(?)
