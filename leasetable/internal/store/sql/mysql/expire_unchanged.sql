-- Ends a lease that was not renewed since it had the given count of renewals, whatever the clock says.
-- Parameters: ?1 lease id, ?2 count of renewals.
-- Keeps I11.
DELETE FROM sqllock_lease WHERE id = UNHEX(?1) AND renewals = ?2
