-- Adds the share or permit for which the token was bumped.
-- Parameters: ?1 name, ?2 token, ?3 lease id, ?4 limit of permits.
INSERT INTO sqllock_permit (name, token, lease_id, permits, acquired_at)
VALUES (?1, ?2, ?3, ?4, {now})
