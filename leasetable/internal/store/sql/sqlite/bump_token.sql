INSERT INTO sqllock_lock (name, token, acquired_at)
VALUES (?1, ?2 + 1, {now})
ON CONFLICT (name) DO UPDATE SET token = token + 1 WHERE token = ?2 AND lease_id IS ?3
