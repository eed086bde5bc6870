DELETE FROM sqllock_lease WHERE id = ?1 AND expires_at <= CAST(unixepoch('subsec') * 1000000 AS INTEGER)
