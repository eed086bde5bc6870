-- Bumps the token of a name for another share or permit, if the name is as it was read: it has the given token, and is
-- held by the given lease, which is over, or by none (NULL). Every acquisition bumps the token, so no other share or
-- permit was acquired since. add_permit.sql follows in the same transaction. The row of the lease is looked for as
-- in takeover.sql.
-- Parameters: ?1 limit of permits, ?2 name, ?3 token that was read, ?4 lease id that was read (or NULL).
-- Keeps I6, I8, I9, I12, I29, I30.
UPDATE sqllock_lock
SET token = token + 1, lease_id = NULL, permits = ?1, acquired_at = {now}, released_at = NULL, hold_until = NULL
WHERE name = ?2 AND token = ?3 AND lease_id IS ?4 AND NOT EXISTS (SELECT 1 FROM sqllock_lease WHERE id = ?4)
