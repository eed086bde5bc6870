-- Announces that another process waits for a name, if the name is held. If there are several waiters, the table keeps
-- the one that has waited longest. The announcement is advisory, so the statement does not wait for a row that another
-- session has locked: a transaction that the holder guards may last.
-- Parameters: $1 name, $2 waiter_since (microseconds since 1970), $3 validity of the announcement in microseconds.
-- Keeps I36.
UPDATE sqllock_lock
SET waiter_since = CASE WHEN waiter_until > clock_timestamp() THEN least(waiter_since, $2) ELSE $2 END,
    waiter_until = clock_timestamp() + $3::bigint::float * interval '1 microsecond'
WHERE name = $1 AND EXISTS (SELECT FROM sqllock_lock WHERE name = $1 AND lease_id IS NOT NULL FOR UPDATE SKIP LOCKED)
