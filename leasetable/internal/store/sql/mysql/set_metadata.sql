-- The insert id is the token, even if the metadata stays the same: a row that stays the same does not count as changed.
UPDATE sqllock_lock
SET metadata = UNHEX(?1), token = LAST_INSERT_ID(token)
WHERE name = UNHEX(?2) AND lease_id = UNHEX(?3) AND token = ?4
