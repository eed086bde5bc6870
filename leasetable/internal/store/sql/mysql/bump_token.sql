INSERT INTO sqllock_lock (name, token, acquired_at)
VALUES (UNHEX(?1), ?2 + 1, UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE token = IF(token = ?2 AND lease_id <=> UNHEX(?3), token + 1, token)
