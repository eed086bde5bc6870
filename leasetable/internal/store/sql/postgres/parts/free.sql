-- Holds for a name that is free: no lease holds it, it has no permits, and its minimum hold is over.
lease_id IS NULL AND permits IS NULL AND coalesce(hold_until <= clock_timestamp(), true)
