-- An absent name is inserted. The condition is decided on the row that the statement locks; the subquery only avoids that
-- lock on a busy name. The insert id is the token, or 0 if the row turned out to be held. lease_id, on which the condition
-- depends, is assigned last: MySQL and MariaDB assign from left to right, or all at once.
INSERT INTO sqllock_lock (name, token, acquired_at, metadata, lease_id)
SELECT UNHEX(?1), LAST_INSERT_ID(1), UTC_TIMESTAMP(6), UNHEX(?4), UNHEX(?2)
FROM (SELECT 1) one
WHERE NOT EXISTS (SELECT 1 FROM sqllock_lock held
                  WHERE held.name = UNHEX(?1) AND (held.lease_id IS NOT NULL OR held.permits IS NOT NULL OR held.hold_until > UTC_TIMESTAMP(6)))
ON DUPLICATE KEY UPDATE
    token = IF({free}, LAST_INSERT_ID(token + 1), token + LAST_INSERT_ID(0)),
    acquired_at = IF({free}, UTC_TIMESTAMP(6), sqllock_lock.acquired_at),
    released_at = IF({free}, NULL, released_at),
    metadata = IF({free}, UNHEX(?4), sqllock_lock.metadata),
    waiter_until = IF({free} AND waiter_since = ?3, NULL, waiter_until),
    lease_id = IF({free}, UNHEX(?2), sqllock_lock.lease_id)
