-- The difference is cast: beyond the range of an integer it would be a float.
{state},
coalesce(l.expires_at, k.hold_until, 0) AS expires_us,
coalesce(CAST(coalesce(l.expires_at, k.hold_until) - {now} AS INTEGER), 0) AS remaining_us
