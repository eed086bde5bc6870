-- Increments the changes of every lease that has shares or permits of a name, once for each lease.
-- Parameters: ?1 name.
-- Keeps I20.
UPDATE sqllock_permit p JOIN sqllock_lease l ON l.id = p.lease_id
SET l.changes = l.changes + 1
WHERE p.name = UNHEX(?1)
