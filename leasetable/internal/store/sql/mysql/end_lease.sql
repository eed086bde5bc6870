-- Ends a lease. Names that still refer to it can be taken over.
-- Parameters: ?1 lease id.
DELETE FROM sqllock_lease WHERE id = UNHEX(?1)
