DELETE FROM sqllock_permit WHERE name = UNHEX(?1)
