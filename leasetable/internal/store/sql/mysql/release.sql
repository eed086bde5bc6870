-- Releases a name that a lease holds with a token. If the minimum hold is not NULL, the name stays taken until so many
-- microseconds after its acquisition. The row stays, because of its token. The insert id is 1 if another process waits
-- for the name, and 0 otherwise.
-- Parameters: ?1 name, ?2 lease id, ?3 token, ?4 minimum hold in microseconds (or NULL).
-- Keeps I6, I21, I22, I36.
UPDATE sqllock_lock
SET lease_id = NULL, released_at = UTC_TIMESTAMP(6), hold_until = acquired_at + INTERVAL ?4 MICROSECOND,
    waiter_until = IF(LAST_INSERT_ID(COALESCE(waiter_until > UTC_TIMESTAMP(6), 0)), waiter_until, NULL)
WHERE name = UNHEX(?1) AND lease_id = UNHEX(?2) AND token = ?3
