-- Takes names that are absent: <values> are they, the token, and the lease. If one is there, that is
-- the error 1062, and none is taken.
INSERT INTO sqllock_lock (name, token, lease_id, metadata, acquired_at)
VALUES {values}
