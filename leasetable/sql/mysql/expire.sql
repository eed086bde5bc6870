-- Ends a lease if it has expired. A renewal that comes first is read again after the wait for
-- its row; one that comes later finds no row.
DELETE FROM sqllock_lease WHERE id = UNHEX(?) AND expires_at <= UTC_TIMESTAMP(6)
