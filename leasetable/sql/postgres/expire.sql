-- Ends the lease $1 if it has expired. A renewal that comes first is read again after the wait
-- for its row; one that comes later finds no row.
DELETE FROM sqllock_lease WHERE id = $1 AND expires_at <= clock_timestamp()
