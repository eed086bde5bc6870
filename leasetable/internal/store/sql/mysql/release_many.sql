-- Releases the names that a lease holds with the given tokens, with a minimum hold as in release.sql.
-- Placeholders: <rows> the names with their tokens, <lease>, <keep> the minimum hold in microseconds or NULL.
-- Keeps I6.
UPDATE sqllock_lock FORCE INDEX (PRIMARY)
SET lease_id = NULL, released_at = UTC_TIMESTAMP(6), hold_until = acquired_at + INTERVAL {keep} MICROSECOND
WHERE (name, token) IN ({rows}) AND lease_id = {lease}
