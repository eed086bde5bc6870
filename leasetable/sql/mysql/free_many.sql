-- Which of the names <names> are free, and neither kept after their release nor in places. It leaves out rows that
-- somebody else has locked, and keeps none locked itself.
SELECT name, token, FALSE
FROM sqllock_lock FORCE INDEX (PRIMARY)
WHERE name IN ({names}) AND lease_id IS NULL AND places IS NULL AND COALESCE(kept_until <= UTC_TIMESTAMP(6), TRUE)
FOR UPDATE SKIP LOCKED
