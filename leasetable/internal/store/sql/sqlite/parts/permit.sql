{state},
coalesce(l.expires_at, 0) AS expires_us,
coalesce(CAST(l.expires_at - {now} AS INTEGER), 0) AS remaining_us
