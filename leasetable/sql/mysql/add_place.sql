-- Adds the place that the token was raised for: the name, the token, the lease, how many places there may be.
INSERT INTO sqllock_place (name, token, lease_id, places, acquired_at)
VALUES (UNHEX(?), ?, UNHEX(?), ?, UTC_TIMESTAMP(6))
