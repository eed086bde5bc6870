-- acquire.sql also reads another row of the table, so this one is named.
sqllock_lock.lease_id IS NULL AND permits IS NULL AND COALESCE(hold_until <= UTC_TIMESTAMP(6), TRUE)
