-- Clears a permit whose lease is over for good: the name, the lease, the token. It does not wait for a
-- transaction that its holder guarded: until that has ended the permit is not to be had. LIMIT has the inner statement run by itself.
DELETE p
FROM sqllock_permit p
JOIN (
  SELECT name, token FROM sqllock_permit WHERE name = UNHEX(?) AND lease_id = UNHEX(?) AND token = ? LIMIT 1 FOR UPDATE SKIP LOCKED
) free ON free.name = p.name AND free.token = p.token
