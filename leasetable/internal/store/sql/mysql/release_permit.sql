DELETE FROM sqllock_permit WHERE name = UNHEX(?1) AND lease_id = UNHEX(?2) AND token = ?3
