-- Leaves word for the lease ?1 that its locks were changed.
UPDATE sqllock_lease SET changes = changes + 1 WHERE id = ?1
