-- Moves a name, held with a token, from one lease to another: the new lease, the name, the token, the old
-- lease, the new one again. It may be run again: what is on its new lease stays there. The token comes back
-- as the insert id.
UPDATE sqllock_lock
SET lease_id = UNHEX(?), token = LAST_INSERT_ID(token)
WHERE name = UNHEX(?) AND token = ? AND lease_id IN (UNHEX(?), UNHEX(?))
