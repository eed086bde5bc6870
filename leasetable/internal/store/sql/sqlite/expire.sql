-- Ends a lease if it has expired.
-- Parameters: ?1 lease id.
-- Keeps I9, I10.
DELETE FROM sqllock_lease WHERE id = ?1 AND expires_at <= CAST(unixepoch('subsec') * 1000000 AS INTEGER)
