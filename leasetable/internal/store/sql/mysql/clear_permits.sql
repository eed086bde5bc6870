-- Deletes all shares or permits of a name.
-- Parameters: ?1 name.
DELETE FROM sqllock_permit WHERE name = UNHEX(?1)
