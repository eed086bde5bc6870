-- LIMIT makes the server run the inner statement by itself.
DELETE p
FROM sqllock_permit p
JOIN (
  SELECT name, token FROM sqllock_permit
  WHERE name = UNHEX(?1) AND lease_id = UNHEX(?2) AND token = ?3 AND NOT EXISTS (SELECT 1 FROM sqllock_lease WHERE id = UNHEX(?2))
  LIMIT 1 FOR UPDATE SKIP LOCKED
) free ON free.name = p.name AND free.token = p.token
