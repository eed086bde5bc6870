-- Which of the names <names> are not absent.
SELECT name, token, FALSE
FROM sqllock_lock FORCE INDEX (PRIMARY)
WHERE name IN ({names})
