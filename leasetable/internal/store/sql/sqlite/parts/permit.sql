{state},
coalesce(l.expires_at, 0) AS expires_us,
coalesce(l.expires_at - {now}, 0) AS remaining_us
