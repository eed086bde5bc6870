DELETE FROM sqllock_permit WHERE name = ?1 AND lease_id = ?2 AND token = ?3
