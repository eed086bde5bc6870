-- Takes names, each for a lease, if they are absent or free, and neither kept after their release
-- nor in places. They
-- are given as a JSON list: name and lease in hex, two things for release_many.sql, the metadata in hex; names and
-- metadata are short: for long ones MariaDB makes a table on the
-- disk. What decides is read from the rows that the statement locks, in the order of their names; see
-- acquire.sql. Which it took is read by taken_many.sql.
INSERT INTO sqllock_lock (name, token, acquired_at, metadata, lease_id)
SELECT UNHEX(a.name), 1, UTC_TIMESTAMP(6), UNHEX(a.metadata), UNHEX(a.lease_id)
FROM JSON_TABLE(?, '$[*]' COLUMNS (name VARCHAR(256) CHARACTER SET ascii PATH '$[0]', lease_id CHAR(32) CHARACTER SET ascii PATH '$[1]', metadata VARCHAR(256) CHARACTER SET ascii PATH '$[4]')) a
WHERE NOT EXISTS (SELECT 1 FROM sqllock_lock held
                  WHERE held.name = UNHEX(a.name) AND (held.lease_id IS NOT NULL OR held.places IS NOT NULL OR held.kept_until > UTC_TIMESTAMP(6)))
ORDER BY a.name
ON DUPLICATE KEY UPDATE
    token = IF(sqllock_lock.lease_id IS NULL AND places IS NULL AND COALESCE(kept_until <= UTC_TIMESTAMP(6), TRUE),
               sqllock_lock.token + 1, sqllock_lock.token),
    acquired_at = IF(sqllock_lock.lease_id IS NULL AND places IS NULL AND COALESCE(kept_until <= UTC_TIMESTAMP(6), TRUE),
                     UTC_TIMESTAMP(6), sqllock_lock.acquired_at),
    released_at = IF(sqllock_lock.lease_id IS NULL AND places IS NULL AND COALESCE(kept_until <= UTC_TIMESTAMP(6), TRUE),
                     NULL, released_at),
    metadata = IF(sqllock_lock.lease_id IS NULL AND places IS NULL AND COALESCE(kept_until <= UTC_TIMESTAMP(6), TRUE),
                  UNHEX(a.metadata), sqllock_lock.metadata),
    lease_id = IF(sqllock_lock.lease_id IS NULL AND places IS NULL AND COALESCE(kept_until <= UTC_TIMESTAMP(6), TRUE),
                  UNHEX(a.lease_id), sqllock_lock.lease_id)
