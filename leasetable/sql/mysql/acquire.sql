-- Takes a name for a lease if it is absent or free, and neither kept after its release nor in permits: the name, the
-- metadata and the lease; the name; the metadata, since when the one was noted to wait that takes it, and the
-- lease. What decides is read from the row that the statement locks; the subquery
-- only spares a busy name the lock. The token comes back as the insert id, which is 0 when the row
-- turned out to be held. What decides is assigned last: MySQL and MariaDB
-- assign from left to right, or all at once.
INSERT INTO sqllock_lock (name, token, acquired_at, metadata, lease_id)
SELECT UNHEX(?), LAST_INSERT_ID(1), UTC_TIMESTAMP(6), UNHEX(?), UNHEX(?)
FROM (SELECT 1) one
WHERE NOT EXISTS (SELECT 1 FROM sqllock_lock held
                  WHERE held.name = UNHEX(?) AND (held.lease_id IS NOT NULL OR held.permits IS NOT NULL OR held.hold_until > UTC_TIMESTAMP(6)))
ON DUPLICATE KEY UPDATE
    token = IF(sqllock_lock.lease_id IS NULL AND permits IS NULL AND COALESCE(hold_until <= UTC_TIMESTAMP(6), TRUE),
               LAST_INSERT_ID(token + 1), token + LAST_INSERT_ID(0)),
    acquired_at = IF(sqllock_lock.lease_id IS NULL AND permits IS NULL AND COALESCE(hold_until <= UTC_TIMESTAMP(6), TRUE),
                     UTC_TIMESTAMP(6), sqllock_lock.acquired_at),
    released_at = IF(sqllock_lock.lease_id IS NULL AND permits IS NULL AND COALESCE(hold_until <= UTC_TIMESTAMP(6), TRUE),
                     NULL, released_at),
    metadata = IF(sqllock_lock.lease_id IS NULL AND permits IS NULL AND COALESCE(hold_until <= UTC_TIMESTAMP(6), TRUE),
                  UNHEX(?), sqllock_lock.metadata),
    waiter_until = IF(sqllock_lock.lease_id IS NULL AND permits IS NULL AND COALESCE(hold_until <= UTC_TIMESTAMP(6), TRUE) AND waiter_since = ?,
                      NULL, waiter_until),
    lease_id = IF(sqllock_lock.lease_id IS NULL AND permits IS NULL AND COALESCE(hold_until <= UTC_TIMESTAMP(6), TRUE),
                  UNHEX(?), sqllock_lock.lease_id)
