-- Reads the names that a lease holds, as a whole or by a share or permit, and their tokens. No index serves this
-- statement: it runs only after the connection to the server was lost.
-- Parameters: ?1 lease id.
-- Keeps I23.
SELECT name, token, false AS permit FROM sqllock_lock WHERE lease_id = UNHEX(?1)
UNION ALL
SELECT name, token, true FROM sqllock_permit WHERE lease_id = UNHEX(?1)
