UPDATE sqllock_lease
SET renewals = renewals + 1,
    expires_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + ttl_us
WHERE id = ?1 AND expires_at > CAST(unixepoch('subsec') * 1000000 AS INTEGER)
RETURNING changes
