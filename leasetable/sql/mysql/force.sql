-- Takes a name away from a lease, which holds it with a token, and leaves word for it: the name,
-- the lease, or null for a name that is kept after its release, the token. The token rises, so that what is left of its holder can be told.
UPDATE sqllock_lock k LEFT JOIN sqllock_lease l ON l.id = k.lease_id
SET k.lease_id = NULL, k.token = k.token + 1, k.released_at = UTC_TIMESTAMP(6), k.hold_until = NULL, l.changes = l.changes + 1
WHERE k.name = UNHEX(?) AND k.lease_id <=> UNHEX(?) AND k.token = ?
