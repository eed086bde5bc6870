-- Reads which names have rows.
-- Placeholders: <names>.
SELECT name, token, FALSE
FROM sqllock_lock FORCE INDEX (PRIMARY)
WHERE name IN ({names})
