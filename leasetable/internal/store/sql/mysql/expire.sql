DELETE FROM sqllock_lease WHERE id = UNHEX(?1) AND expires_at <= UTC_TIMESTAMP(6)
