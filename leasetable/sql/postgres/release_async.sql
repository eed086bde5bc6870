-- Releases the name $1 as release.sql does, and does not wait for its commit to be on disk. The name is not kept.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = clock_timestamp(), hold_until = NULL
FROM set_config('synchronous_commit', 'off', true)
WHERE name = $1 AND lease_id = $2 AND token = $3
RETURNING CASE WHEN waiter_until > clock_timestamp() THEN (pg_notify('sqllock', waiter_since || ' ' || encode(name, 'hex')) IS NOT NULL)::integer ELSE 0 END
