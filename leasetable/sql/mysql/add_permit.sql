-- Adds the permit that the token was raised for: the name, the token, the lease, how many permits there may be.
INSERT INTO sqllock_permit (name, token, lease_id, permits, acquired_at)
VALUES (UNHEX(?), ?, UNHEX(?), ?, UTC_TIMESTAMP(6))
