-- The names that the lease $1 holds, alone or together with others, and their tokens. There is no index for it: it is
-- asked after the connection to the server was lost.
SELECT encode(name, 'hex') AS name, token, false AS permit FROM sqllock_lock WHERE lease_id = $1
UNION ALL
SELECT encode(name, 'hex'), token, true FROM sqllock_permit WHERE lease_id = $1
