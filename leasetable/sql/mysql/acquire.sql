-- Takes a name for a lease if it is absent or free. What decides is read from the row that the
-- statement locks; the subquery only spares a busy name the lock. The token comes back as the
-- insert id, which is 0 when the row turned out to be held. MySQL and MariaDB assign from left
-- to right, so that lease_id, which decides, comes last.
INSERT INTO sqllock_lock (name, token, lease_id, acquired_at)
SELECT want.name, LAST_INSERT_ID(1), want.lease_id, UTC_TIMESTAMP(6)
FROM (SELECT CAST(? AS BINARY) AS name, CAST(? AS BINARY) AS lease_id) want
WHERE NOT EXISTS (SELECT 1 FROM sqllock_lock held WHERE held.name = want.name AND held.lease_id IS NOT NULL)
ON DUPLICATE KEY UPDATE
    token = IF(sqllock_lock.lease_id IS NULL, LAST_INSERT_ID(token + 1), token + LAST_INSERT_ID(0)),
    acquired_at = IF(sqllock_lock.lease_id IS NULL, UTC_TIMESTAMP(6), sqllock_lock.acquired_at),
    released_at = IF(sqllock_lock.lease_id IS NULL, NULL, sqllock_lock.released_at),
    lease_id = IF(sqllock_lock.lease_id IS NULL, want.lease_id, sqllock_lock.lease_id)
