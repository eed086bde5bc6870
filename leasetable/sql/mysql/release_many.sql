-- Releases the names that held_many.sql has locked; all of them are there. For many rows this is much
-- faster than an UPDATE.
INSERT INTO sqllock_lock (name, token, acquired_at)
SELECT UNHEX(r.name), 1, UTC_TIMESTAMP(6)
FROM JSON_TABLE(?, '$[*]' COLUMNS (name VARCHAR(256) CHARACTER SET ascii PATH '$[0]', keep_us BIGINT PATH '$[3]')) r
ON DUPLICATE KEY UPDATE
    lease_id = NULL,
    released_at = UTC_TIMESTAMP(6),
    kept_until = sqllock_lock.acquired_at + INTERVAL r.keep_us MICROSECOND
