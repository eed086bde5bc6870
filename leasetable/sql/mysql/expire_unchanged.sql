-- Ends a lease if it was not renewed since it had been renewed so many times, whatever the clock
-- says: the lease, the number.
DELETE FROM sqllock_lease WHERE id = UNHEX(?) AND renewals = ?
