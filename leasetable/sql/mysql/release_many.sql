-- Releases the names that held_many.sql has locked.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (name VARCHAR(2048) PATH '$[0]', keep_us BIGINT PATH '$[3]')) r
JOIN sqllock_lock k ON k.name = UNHEX(r.name)
SET k.lease_id = NULL, k.released_at = UTC_TIMESTAMP(6), k.kept_until = k.acquired_at + INTERVAL r.keep_us MICROSECOND
