-- Takes the places of a name away from all who have one.
DELETE FROM sqllock_place WHERE name = ?1
