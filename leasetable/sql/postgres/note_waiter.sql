-- Says that somebody in another process waits for the name $1, since $2 in microseconds since 1970, if
-- the name is held. Of those who wait the one stays noted who has waited longest. It is a hint, and does not wait for
-- a row that somebody has locked: a transaction that its holder guards may last.
UPDATE sqllock_lock
SET waiter_since = CASE WHEN waiter_until > clock_timestamp() THEN least(waiter_since, $2) ELSE $2 END,
    waiter_until = clock_timestamp() + $3::bigint * interval '1 microsecond'
WHERE name = $1 AND EXISTS (SELECT FROM sqllock_lock WHERE name = $1 AND lease_id IS NOT NULL FOR UPDATE SKIP LOCKED)
