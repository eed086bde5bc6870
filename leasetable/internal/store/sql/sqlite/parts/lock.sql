{state},
coalesce(l.expires_at, k.hold_until, 0) AS expires_us,
coalesce(coalesce(l.expires_at, k.hold_until) - {now}, 0) AS remaining_us
