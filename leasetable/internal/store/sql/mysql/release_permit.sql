-- Releases a share or permit. Its token is never used again, so a statement that comes late does nothing.
-- Parameters: ?1 name, ?2 lease id, ?3 token.
-- Keeps I32.
DELETE FROM sqllock_permit WHERE name = UNHEX(?1) AND lease_id = UNHEX(?2) AND token = ?3
