-- Ends a lease if it has expired. If a renewal comes first, the statement waits for the row and reads it again; a
-- renewal that comes later finds no row.
-- Parameters: ?1 lease id.
-- Keeps I9, I10.
DELETE FROM sqllock_lease WHERE id = UNHEX(?1) AND expires_at <= UTC_TIMESTAMP(6)
