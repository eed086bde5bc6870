-- The names that the lease ?1 holds, and their tokens. There is no index for it: it is asked after the
-- connection to the server was lost.
SELECT name, token, false FROM sqllock_lock WHERE lease_id = ?1
