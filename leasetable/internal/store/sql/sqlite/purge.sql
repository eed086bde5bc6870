DELETE FROM sqllock_lease
WHERE id IN (SELECT id FROM sqllock_lease WHERE expires_at <= {now} - ?1 LIMIT ?2)
