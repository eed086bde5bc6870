DELETE FROM sqllock_lease WHERE id = ?1 AND renewals = ?2
