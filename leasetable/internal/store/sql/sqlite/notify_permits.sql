-- Increments the changes of every lease that has shares or permits of a name, once for each lease.
-- Parameters: ?1 name.
-- Keeps I20.
UPDATE sqllock_lease SET changes = changes + 1
WHERE id IN (SELECT lease_id FROM sqllock_permit WHERE name = ?1)
