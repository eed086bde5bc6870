-- Releases a name that a lease holds, whatever its token, with a minimum hold as in release.sql.
-- Parameters: $1 name, $2 lease id, $3 minimum hold in microseconds (or NULL).
-- Keeps I6, I17, I22.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = clock_timestamp(), hold_until = acquired_at + $3::bigint::float * interval '1 microsecond'
WHERE name = $1 AND lease_id = $2
