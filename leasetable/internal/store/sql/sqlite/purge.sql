DELETE FROM sqllock_lease
WHERE id IN (SELECT id FROM sqllock_lease WHERE expires_at <= CAST(unixepoch('subsec') * 1000000 AS INTEGER) - ?1 LIMIT ?2)
