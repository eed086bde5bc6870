-- Deletes all shares or permits of a name.
-- Parameters: name.
DELETE FROM sqllock_permit WHERE name = UNHEX(?1)
