-- The state of a permit k with its lease l.
{state},
coalesce((extract(epoch FROM {lease_end}) OPERATOR(pg_catalog.*) 1000000)::bigint, 0) AS expires_us,
coalesce((extract(epoch FROM {lease_end} - clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::bigint, 0) AS remaining_us
