-- Fails if another session has locked a share or permit.
-- Parameters: ?1 name, ?2 token.
SELECT count(*) FROM sqllock_permit WHERE name = UNHEX(?1) AND token = ?2 FOR UPDATE NOWAIT
