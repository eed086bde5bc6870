-- Which of the names <names> are free, and neither kept after their release nor in permits. It leaves out rows that
-- somebody else has locked, and keeps none locked itself.
SELECT name, token, FALSE
FROM sqllock_lock FORCE INDEX (PRIMARY)
WHERE name IN ({names}) AND lease_id IS NULL AND permits IS NULL AND COALESCE(hold_until <= UTC_TIMESTAMP(6), TRUE)
FOR UPDATE SKIP LOCKED
