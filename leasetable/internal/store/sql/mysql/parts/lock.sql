{state},
COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', COALESCE(l.expires_at, k.hold_until)), 0) AS expires_us,
COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), COALESCE(l.expires_at, k.hold_until)), 0) AS remaining_us
