DELETE FROM sqllock_lease WHERE id = ?1
