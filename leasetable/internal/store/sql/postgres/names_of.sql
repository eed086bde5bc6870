-- Reads the names that a lease holds, as a whole or by a share or permit, and their tokens, among the names that follow a
-- given one. No index serves the condition, so one run looks at a limited number of names. The row with the token
-- 0 is the last of them; there is none if no name follows.
-- Parameters: $1 lease id, $2 the name, $3 how many names.
-- Keeps I23.
WITH page AS (SELECT name, token, lease_id FROM sqllock_lock WHERE name > $2 ORDER BY name LIMIT $3),
last AS (SELECT name FROM page ORDER BY name DESC LIMIT 1)
SELECT pg_catalog.encode(name, 'hex') AS name, token, false AS permit FROM page WHERE lease_id = $1
UNION ALL
SELECT pg_catalog.encode(name, 'hex'), token, true FROM sqllock_permit WHERE lease_id = $1 AND name > $2 AND name <= (SELECT name FROM last)
UNION ALL
SELECT pg_catalog.encode(name, 'hex'), 0, false FROM last
