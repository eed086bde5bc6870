DELETE FROM sqllock_lease WHERE id = ?1 AND expires_at <= {now}
