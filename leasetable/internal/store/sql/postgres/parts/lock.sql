-- The state of a name k with its lease l. Without a lease, the expiry is the end of the minimum hold: see hold_until.sql.
{state},
coalesce((extract(epoch FROM coalesce(l.expires_at, {hold_until})) OPERATOR(pg_catalog.*) 1000000)::bigint, 0) AS expires_us,
coalesce((extract(epoch FROM coalesce(l.expires_at, {hold_until}) - clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::bigint, 0) AS remaining_us
