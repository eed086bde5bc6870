-- Reads which names are free. It skips rows that other sessions have locked, and leaves no row locked.
-- Placeholders: <names>.
SELECT name, token, FALSE
FROM sqllock_lock FORCE INDEX (PRIMARY)
WHERE name IN ({names}) AND {free}
FOR UPDATE SKIP LOCKED
