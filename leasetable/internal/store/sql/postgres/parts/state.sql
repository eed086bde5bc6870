-- What the row k of a name or permit and the row l of its lease have in common: see read_state.sql.
k.token,
pg_catalog.encode(k.lease_id, 'hex') AS lease_id,
k.lease_id IS NOT NULL AND l.id IS NULL AS gone,
coalesce(l.owner, '') AS owner,
coalesce(l.host, '') AS host,
coalesce(l.pid, 0) AS pid,
(extract(epoch FROM least(greatest(k.acquired_at, timestamptz '1970-01-01Z'), timestamptz '2200-01-01Z')) OPERATOR(pg_catalog.*) 1000000)::bigint AS acquired_us,
coalesce(l.ttl_us, 0) AS ttl_us,
coalesce(l.renewals, 0) AS renewals,
k.permits
