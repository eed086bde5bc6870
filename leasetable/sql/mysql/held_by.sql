-- The names that a lease holds, and their tokens. There is no index for it: it is asked after the
-- connection to the server was lost.
SELECT name, token, 0 FROM sqllock_lock WHERE lease_id = UNHEX(?)
