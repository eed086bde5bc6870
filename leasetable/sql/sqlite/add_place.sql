-- Adds the place of the name ?1 that the token was raised to ?2 for, for the lease ?3.
INSERT INTO sqllock_place (name, token, lease_id, acquired_at)
VALUES (?1, ?2, ?3, CAST(unixepoch('subsec') * 1000000 AS INTEGER))
