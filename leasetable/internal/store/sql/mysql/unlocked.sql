-- Fails if another session has locked the row of a name, or has just inserted it.
-- Parameters: ?1 name.
SELECT count(*) FROM sqllock_lock WHERE name = UNHEX(?1) FOR UPDATE NOWAIT
