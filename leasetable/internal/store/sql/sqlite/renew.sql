UPDATE sqllock_lease
SET renewals = renewals + 1,
    expires_at = {now} + ttl_us
WHERE id = ?1 AND expires_at > {now}
RETURNING changes
