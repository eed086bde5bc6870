-- Fails if somebody has the place of a name with a token locked.
SELECT count(*) FROM sqllock_place WHERE name = UNHEX(?) AND token = ? FOR UPDATE NOWAIT
