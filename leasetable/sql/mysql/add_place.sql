-- Adds the place that the token was raised for: the name, the token, the lease.
INSERT INTO sqllock_place (name, token, lease_id, acquired_at)
VALUES (UNHEX(?), ?, UNHEX(?), UTC_TIMESTAMP(6))
