-- Fails if somebody has the permit of a name with a token locked.
SELECT count(*) FROM sqllock_permit WHERE name = UNHEX(?) AND token = ? FOR UPDATE NOWAIT
