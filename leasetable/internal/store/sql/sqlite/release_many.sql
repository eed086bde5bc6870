-- Releases the names that a lease holds with the given tokens, with a minimum hold as in release.sql. It returns the
-- released names and whether another process waits for them.
-- Parameters: ?1 JSON list of the names (each in hex, with its token), ?2 lease id, ?3 minimum hold in microseconds (or
-- NULL).
-- Keeps I6.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = {now}, hold_until = acquired_at + ?3
FROM (SELECT unhex(value->>0) AS its_name, value->>1 AS its_token FROM json_each(?1)) r
WHERE name = r.its_name AND lease_id = ?2 AND token = r.its_token
RETURNING name, token, coalesce(waiter_until > {now}, 0) AS wanted
