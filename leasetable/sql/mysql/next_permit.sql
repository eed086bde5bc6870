-- Raises the token of a name for another permit, if the name is as it was seen: how many permits there
-- are, the name, its token, and the lease that holds it and is over, or null for none. Every acquisition raises the
-- token, so nobody has taken a permit since. add_permit.sql follows in the same transaction.
UPDATE sqllock_lock
SET token = token + 1, lease_id = NULL, permits = ?, acquired_at = UTC_TIMESTAMP(6), released_at = NULL, hold_until = NULL
WHERE name = UNHEX(?) AND token = ? AND lease_id <=> UNHEX(?)
