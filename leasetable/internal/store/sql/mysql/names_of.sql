WITH page AS (SELECT name, token, lease_id FROM sqllock_lock WHERE name > UNHEX(?2) ORDER BY name LIMIT ?3),
last AS (SELECT name FROM page ORDER BY name DESC LIMIT 1)
SELECT name, token, FALSE AS permit FROM page WHERE lease_id = UNHEX(?1)
UNION ALL
SELECT name, token, TRUE FROM sqllock_permit WHERE lease_id = UNHEX(?1) AND name > UNHEX(?2) AND name <= (SELECT name FROM last)
UNION ALL
SELECT name, 0, FALSE FROM last
