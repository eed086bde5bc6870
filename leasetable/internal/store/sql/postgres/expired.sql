-- Lists leases that expired at least the given time ago, up to a limit. No index serves the condition: an index of the
-- expiry would make each renewal cost more, so that it is not a HOT update.
-- Parameters: $1 microseconds, $2 limit.
SELECT pg_catalog.encode(id, 'hex') AS lease_id
FROM sqllock_lease
WHERE expires_at <= clock_timestamp() - $1::bigint::float * interval '1 microsecond'
LIMIT $2
