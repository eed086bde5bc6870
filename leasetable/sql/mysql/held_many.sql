-- Locks names that are held, each by a lease with a token, in a transaction that releases them. They
-- are given as a JSON list: name and lease in hex, the token, and the microseconds of release.sql. It
-- leaves out rows that somebody else has locked, and tells whether another process waits for a name.
SELECT name, token, COALESCE(wanted_until > UTC_TIMESTAMP(6), 0) AS wanted
FROM sqllock_lock
WHERE (name, lease_id, token) IN (
  SELECT UNHEX(r.name), UNHEX(r.lease_id), r.token
  FROM JSON_TABLE(?, '$[*]' COLUMNS (name VARCHAR(256) CHARACTER SET ascii PATH '$[0]', lease_id CHAR(32) CHARACTER SET ascii PATH '$[1]', token BIGINT PATH '$[2]')) r
)
FOR UPDATE SKIP LOCKED
