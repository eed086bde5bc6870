INSERT IGNORE INTO sqllock_lock (name, token, permits, acquired_at)
VALUES (UNHEX(?1), 1, ?2, UTC_TIMESTAMP(6))
