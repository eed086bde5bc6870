-- The names that a lease holds, alone or together with others, and their tokens: the lease, and again. There is no index for it: it is
-- asked after the connection to the server was lost.
SELECT name, token, false AS permit FROM sqllock_lock WHERE lease_id = UNHEX(?)
UNION ALL
SELECT name, token, true FROM sqllock_permit WHERE lease_id = UNHEX(?)
