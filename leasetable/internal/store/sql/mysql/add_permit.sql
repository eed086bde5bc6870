INSERT INTO sqllock_permit (name, token, lease_id, permits, acquired_at)
VALUES (UNHEX(?1), ?2, UNHEX(?3), ?4, UTC_TIMESTAMP(6))
