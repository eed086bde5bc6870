-- The lease is told by notify_lease.sql, which follows in the same transaction.
UPDATE sqllock_lock
SET lease_id = NULL, token = token + 1, released_at = {now}, hold_until = NULL
WHERE name = ?1 AND lease_id IS ?2 AND token = ?3
