-- Reads which names are free (see acquire.sql). It skips rows that other sessions have locked, and leaves no row
-- locked.
-- Placeholders: <names>.
SELECT name, token, FALSE
FROM sqllock_lock FORCE INDEX (PRIMARY)
WHERE name IN ({names}) AND lease_id IS NULL AND permits IS NULL AND COALESCE(hold_until <= UTC_TIMESTAMP(6), TRUE)
FOR UPDATE SKIP LOCKED
