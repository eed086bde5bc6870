-- Acquires a free name. It withdraws the announcement of the waiter that acquires the name. Absent names are for
-- insert.sql.
-- Parameters: $1 name, $2 lease id, $3 waiter_since of that waiter, $4 metadata.
-- Keeps I6, I8, I12, I14, I22, I30, I35.
UPDATE sqllock_lock
SET token = token + 1, lease_id = $2, acquired_at = clock_timestamp(), released_at = NULL, metadata = $4,
    waiter_until = CASE WHEN waiter_since = $3 THEN NULL ELSE waiter_until END
WHERE name = $1 AND {free}
RETURNING token
