-- Releases names that the lease <lease> holds, and keeps them until <keep> microseconds after they were acquired, if that is
-- not null: <rows> are they and their tokens.
UPDATE sqllock_lock FORCE INDEX (PRIMARY)
SET lease_id = NULL, released_at = UTC_TIMESTAMP(6), hold_until = acquired_at + INTERVAL {keep} MICROSECOND
WHERE (name, token) IN ({rows}) AND lease_id = {lease}
