-- Withdraws the announcement of a waiter; see note_waiter.sql.
-- Parameters: $1 name, $2 waiter_since.
UPDATE sqllock_lock SET waiter_until = NULL
WHERE name = $1 AND EXISTS (SELECT FROM sqllock_lock WHERE name = $1 AND waiter_since = $2 FOR UPDATE SKIP LOCKED)
