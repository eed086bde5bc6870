-- Reads which names a lease holds, and whether another process waits for them. It skips rows that other sessions have
-- locked, and leaves no row locked.
-- Placeholders: <rows> the names with their tokens, <lease>.
SELECT name, token, COALESCE(waiter_until > UTC_TIMESTAMP(6), 0) AS wanted
FROM sqllock_lock FORCE INDEX (PRIMARY)
WHERE (name, token) IN ({rows}) AND lease_id = {lease}
FOR UPDATE SKIP LOCKED
