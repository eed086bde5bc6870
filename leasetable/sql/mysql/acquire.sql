-- Takes a name for a lease if it is free, and neither kept after its release nor in places: the metadata, since when
-- the one was noted to wait that takes it, the lease, and the name twice. A name that is absent is for insert.sql. The
-- token comes back as the insert id, which is 0 when the name was not taken. The row is looked up as
-- a range that has room for one name: of a range InnoDB skips a row that somebody else has locked, and
-- whose committed version is not free, where it would wait for name = ?.
UPDATE sqllock_lock
SET token = LAST_INSERT_ID(token + 1), acquired_at = UTC_TIMESTAMP(6), released_at = NULL, metadata = UNHEX(?),
    wanted_until = IF(wanted_since = ?, NULL, wanted_until), lease_id = UNHEX(?)
WHERE name >= UNHEX(?) AND name < UNHEX(CONCAT(?, '00'))
    AND lease_id IS NULL AND places IS NULL AND COALESCE(kept_until <= UTC_TIMESTAMP(6), TRUE)
