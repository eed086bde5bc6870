-- Takes a name, which is absent, for a lease: the name, the metadata, the lease. If it is there, that is the
-- error 1062.
INSERT INTO sqllock_lock (name, token, acquired_at, metadata, lease_id)
VALUES (UNHEX(?), 1, UTC_TIMESTAMP(6), UNHEX(?), UNHEX(?))
