-- Increments the changes of a lease: its locks were changed.
-- Parameters: ?1 lease id.
-- Keeps I20.
UPDATE sqllock_lease SET changes = changes + 1 WHERE id = ?1
