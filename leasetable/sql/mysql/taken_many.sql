-- Which of the names <names> the lease <lease> holds. Nobody else asks for one of them for the same lease.
SELECT name, token, FALSE
FROM sqllock_lock FORCE INDEX (PRIMARY)
WHERE name IN ({names}) AND lease_id = {lease}
