-- Says that the one that was noted to wait for the name $1 since $2 does so no more; see note_waiter.sql.
UPDATE sqllock_lock SET waiter_until = NULL
WHERE name = $1 AND EXISTS (SELECT FROM sqllock_lock WHERE name = $1 AND waiter_since = $2 FOR UPDATE SKIP LOCKED)
