DELETE FROM sqllock_lease WHERE id = UNHEX(?1)
