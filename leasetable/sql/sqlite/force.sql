-- Takes the name ?1 away from the lease ?2, which holds it with the token ?3. A
-- null lease is none: the name is kept after its release. The token rises, so
-- that what is left of its holder can be told. Word is left by notify_lease.sql, in the same transaction.
UPDATE sqllock_lock
SET lease_id = NULL, token = token + 1, released_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), hold_until = NULL
WHERE name = ?1 AND lease_id IS ?2 AND token = ?3
