-- Passes on the name $2, which the lease $3 holds with the token $4, to the next holder on the same
-- lease, with the metadata $1 and the next token, which it returns doubled, and 1 more if another process waits for the name.
UPDATE sqllock_lock
SET token = token + 1, acquired_at = clock_timestamp(), metadata = $1
WHERE name = $2 AND lease_id = $3 AND token = $4
RETURNING token * 2 + CASE WHEN waiter_until > clock_timestamp() THEN 1 ELSE 0 END
