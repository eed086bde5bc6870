-- Releases names that the lease ?2 holds, and keeps them as release.sql does, for ?3 microseconds; it returns those that it
-- released, and whether another process waits for them. ?1 is a JSON list of them, each in hex and with its token.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), hold_until = acquired_at + ?3
FROM (SELECT unhex(value->>0) AS its_name, value->>1 AS its_token FROM json_each(?1)) r
WHERE name = r.its_name AND lease_id = ?2 AND token = r.its_token
RETURNING name, token, coalesce(waiter_until > CAST(unixepoch('subsec') * 1000000 AS INTEGER), 0) AS wanted
