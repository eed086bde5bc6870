-- Takes the permits of a name away from all who have one.
DELETE FROM sqllock_permit WHERE name = UNHEX(?)
