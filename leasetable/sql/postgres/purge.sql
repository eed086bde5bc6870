-- Ends leases that expired $1 microseconds ago or earlier, $2 of them at most. A renewal that comes
-- first is read again after the wait for its row, as in expire.sql.
DELETE FROM sqllock_lease
WHERE id IN (SELECT id FROM sqllock_lease WHERE expires_at <= clock_timestamp() - $1::bigint * interval '1 microsecond' LIMIT $2)
  AND expires_at <= clock_timestamp() - $1::bigint * interval '1 microsecond'
