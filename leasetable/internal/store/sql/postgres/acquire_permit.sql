-- Acquires a share or permit of a name if the name is as it was read: it has the given token, and is held by the given
-- lease, which is over, or by none (NULL). Every acquisition bumps the token, so no other share or permit was acquired
-- since. The condition is decided on the row that the statement locks. The row of the lease is looked for as
-- in takeover.sql.
-- Parameters: $1 name, $2 token that was read, $3 limit of permits, $4 lease id that was read (or NULL), $5 lease id.
-- Keeps I6, I8, I9, I12, I29, I30, I31.
WITH claimed AS (
  INSERT INTO sqllock_lock AS k (name, token, permits, acquired_at)
  VALUES ($1::bytea, $2::bigint + 1, $3::bigint, clock_timestamp())
  ON CONFLICT (name) DO UPDATE
  SET token = k.token + 1, lease_id = NULL, permits = excluded.permits, acquired_at = clock_timestamp(), released_at = NULL, hold_until = NULL
  WHERE k.token = $2 AND k.lease_id IS NOT DISTINCT FROM $4::bytea AND NOT EXISTS (SELECT FROM sqllock_lease WHERE id = $4::bytea)
  RETURNING token
)
INSERT INTO sqllock_permit (name, token, lease_id, permits, acquired_at)
SELECT $1, token, $5::bytea, $3::bigint, clock_timestamp() FROM claimed
RETURNING token
