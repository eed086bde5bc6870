-- Which names the lease <lease> holds, and whether another process waits for them: <rows> are they and their
-- tokens. It leaves out rows that somebody else has locked, and keeps none locked itself.
SELECT name, token, COALESCE(waiter_until > UTC_TIMESTAMP(6), 0) AS wanted
FROM sqllock_lock FORCE INDEX (PRIMARY)
WHERE (name, token) IN ({rows}) AND lease_id = {lease}
FOR UPDATE SKIP LOCKED
