-- Adds the share or permit for which the token was bumped.
-- Parameters: name, token, lease id, limit of permits.
INSERT INTO sqllock_permit (name, token, lease_id, permits, acquired_at)
VALUES (UNHEX(?1), ?2, UNHEX(?3), ?4, UTC_TIMESTAMP(6))
