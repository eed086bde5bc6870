-- Frees a permit: the name, the lease that has it, the token.
-- There is never another with this token: a statement that comes late does nothing.
DELETE FROM sqllock_permit WHERE name = UNHEX(?) AND lease_id = UNHEX(?) AND token = ?
