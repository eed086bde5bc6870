DELETE FROM sqllock_lease WHERE id = UNHEX(?1) AND renewals = ?2
