-- Reads which names a lease holds. No other claim requests one of them for the same lease.
-- Placeholders: <names>, <lease>.
SELECT name, token, FALSE
FROM sqllock_lock FORCE INDEX (PRIMARY)
WHERE name IN ({names}) AND lease_id = {lease}
