-- Takes a name away from the lease that holds it with the given token, and increments the changes of that lease. If the
-- lease id is NULL, the name is in its minimum hold. The token is bumped, so that leftovers of the holder can be
-- recognized.
-- Parameters: ?1 name, ?2 lease id (or NULL), ?3 token.
-- Keeps I6, I12, I20.
UPDATE sqllock_lock k LEFT JOIN sqllock_lease l ON l.id = k.lease_id
SET k.lease_id = NULL, k.token = k.token + 1, k.released_at = UTC_TIMESTAMP(6), k.hold_until = NULL, l.changes = l.changes + 1
WHERE k.name = UNHEX(?1) AND k.lease_id <=> UNHEX(?2) AND k.token = ?3
