-- Frees the permit of the name $1 that the lease $2 has with the token $3.
-- There is never another with this token: a statement that comes late does nothing.
DELETE FROM sqllock_permit WHERE name = $1 AND lease_id = $2 AND token = $3
