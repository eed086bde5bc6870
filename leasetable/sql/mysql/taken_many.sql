-- Which of the names of acquire_many.sql their leases hold. Nobody else asks for one of them for the
-- same lease.
SELECT k.name, k.token, FALSE
FROM JSON_TABLE(?, '$[*]' COLUMNS (name VARCHAR(256) CHARACTER SET ascii PATH '$[0]', lease_id CHAR(32) CHARACTER SET ascii PATH '$[1]')) a
JOIN sqllock_lock k ON k.name = UNHEX(a.name) AND k.lease_id = UNHEX(a.lease_id)
