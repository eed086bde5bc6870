-- Fails if somebody has the row of a lease locked.
SELECT count(*) FROM sqllock_lease WHERE id = UNHEX(?) FOR UPDATE NOWAIT
