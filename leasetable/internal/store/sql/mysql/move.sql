-- Moves a name, held with a token, from one lease to another. The statement can be repeated: a name on its new lease
-- stays there. The insert id is the token.
-- Parameters: ?1 new lease id, ?2 name, ?3 token, ?4 old lease id.
-- Keeps I6, I26.
UPDATE sqllock_lock
SET lease_id = UNHEX(?1), token = LAST_INSERT_ID(token)
WHERE name = UNHEX(?2) AND token = ?3 AND lease_id IN (UNHEX(?4), UNHEX(?1))
