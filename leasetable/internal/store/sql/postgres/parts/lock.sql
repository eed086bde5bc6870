-- The state of a name k with its lease l. Without a lease, the expiry is the end of the minimum hold.
{state},
coalesce((extract(epoch FROM coalesce({lease_end}, {hold_until})) OPERATOR(pg_catalog.*) 1000000)::bigint, 0) AS expires_us,
coalesce((extract(epoch FROM coalesce({lease_end}, {hold_until}) - clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::bigint, 0) AS remaining_us
