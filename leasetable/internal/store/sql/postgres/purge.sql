-- Ends leases that expired at least the given time ago, up to a limit. If a renewal comes first, the statement waits
-- for the row and reads it again, as in expire.sql.
-- Parameters: $1 microseconds, $2 limit.
DELETE FROM sqllock_lease
WHERE id IN (SELECT id FROM sqllock_lease WHERE expires_at <= clock_timestamp() - $1::bigint::float * interval '1 microsecond' LIMIT $2)
  AND expires_at <= clock_timestamp() - $1::bigint::float * interval '1 microsecond'
