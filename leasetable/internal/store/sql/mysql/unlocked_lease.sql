-- Fails if another session has locked the row of a lease.
-- Parameters: ?1 lease id.
SELECT count(*) FROM sqllock_lease WHERE id = UNHEX(?1) FOR UPDATE NOWAIT
