-- Takes a permit of the name $1 for the lease $5, of $3 in all at most, if the name is as it was seen: with the
-- token $2 and held by the lease $4, which is over, or none if that is null. Every acquisition raises the token,
-- so nobody has taken a permit since. What decides is read from the row that the statement locks.
WITH claimed AS (
  INSERT INTO sqllock_lock AS k (name, token, permits, acquired_at)
  VALUES ($1::bytea, $2::bigint + 1, $3::bigint, clock_timestamp())
  ON CONFLICT (name) DO UPDATE
  SET token = k.token + 1, lease_id = NULL, permits = excluded.permits, acquired_at = clock_timestamp(), released_at = NULL, hold_until = NULL
  WHERE k.token = $2 AND k.lease_id IS NOT DISTINCT FROM $4::bytea
  RETURNING token
)
INSERT INTO sqllock_permit (name, token, lease_id, permits, acquired_at)
SELECT $1, token, $5::bytea, $3::bigint, clock_timestamp() FROM claimed
RETURNING token
