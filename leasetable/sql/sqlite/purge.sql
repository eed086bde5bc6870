-- Ends leases that expired ?1 microseconds ago or earlier, ?2 of them at most.
DELETE FROM sqllock_lease
WHERE id IN (SELECT id FROM sqllock_lease WHERE expires_at <= CAST(unixepoch('subsec') * 1000000 AS INTEGER) - ?1 LIMIT ?2)
