-- Times are computed here, so that no time zone of the session or the driver affects them. A time 0000-00-00, which was written by hand, is NULL there.
k.token,
k.lease_id,
k.lease_id IS NOT NULL AND l.id IS NULL AS gone,
COALESCE(l.owner, '') AS owner,
COALESCE(l.host, '') AS host,
COALESCE(l.pid, 0) AS pid,
COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', k.acquired_at), 0) AS acquired_us,
COALESCE(l.ttl_us, 0) AS ttl_us,
COALESCE(l.renewals, 0) AS renewals,
k.permits
