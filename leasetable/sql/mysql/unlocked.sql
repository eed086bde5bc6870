-- Fails if somebody has the row of a name locked, or has just inserted it.
SELECT count(*) FROM sqllock_lock WHERE name = UNHEX(?) FOR UPDATE NOWAIT
