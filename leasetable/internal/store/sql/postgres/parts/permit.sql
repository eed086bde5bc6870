-- The state of a permit k with its lease l.
{state},
coalesce((extract(epoch FROM l.expires_at) OPERATOR(pg_catalog.*) 1000000)::bigint, 0) AS expires_us,
coalesce((extract(epoch FROM l.expires_at - clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::bigint, 0) AS remaining_us
