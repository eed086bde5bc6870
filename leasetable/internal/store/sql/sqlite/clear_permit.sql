DELETE FROM sqllock_permit WHERE name = ?1 AND lease_id = ?2 AND token = ?3 AND NOT EXISTS (SELECT 1 FROM sqllock_lease WHERE id = ?2)
