lease_id IS NULL AND permits IS NULL AND coalesce(hold_until <= {now}, 1)
