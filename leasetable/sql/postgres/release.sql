-- Releases the name $1 as held by the lease $2 with the token $3, and keeps it until $4
-- microseconds after it was acquired, if that is not null. The row stays, for its token. It returns whether another
-- process waits for the name, which it wakes.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = clock_timestamp(), hold_until = acquired_at + $4::bigint * interval '1 microsecond'
WHERE name = $1 AND lease_id = $2 AND token = $3
RETURNING CASE WHEN waiter_until > clock_timestamp() THEN (pg_notify('sqllock', waiter_since || ' ' || encode(name, 'hex')) IS NOT NULL)::integer ELSE 0 END
