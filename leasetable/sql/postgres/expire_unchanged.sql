-- Ends the lease $1 if it was not renewed since it had been renewed $2 times, whatever the clock
-- says. A renewal that comes first is read again after the wait for its row.
DELETE FROM sqllock_lease WHERE id = $1 AND renewals = $2
