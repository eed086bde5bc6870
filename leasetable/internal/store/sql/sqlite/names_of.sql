WITH page AS (SELECT name, token, lease_id FROM sqllock_lock WHERE name > ?2 ORDER BY name LIMIT ?3),
last AS (SELECT name FROM page ORDER BY name DESC LIMIT 1)
SELECT name, token, false AS permit FROM page WHERE lease_id = ?1
UNION ALL
SELECT name, token, true FROM sqllock_permit WHERE lease_id = ?1 AND name > ?2 AND name <= (SELECT name FROM last)
UNION ALL
SELECT name, 0, false FROM last
