-- Adds the permit of the name ?1 that the token was raised to ?2 for, for the lease ?3, of ?4 in all at most.
INSERT INTO sqllock_permit (name, token, lease_id, permits, acquired_at)
VALUES (?1, ?2, ?3, ?4, CAST(unixepoch('subsec') * 1000000 AS INTEGER))
