-- Attaches metadata to a name while a lease holds it with a token: the metadata, the name, the lease, the
-- token. The token comes back as the insert id, also when the metadata was the same before: a row that
-- stays as it was does not count as changed.
UPDATE sqllock_lock
SET metadata = UNHEX(?), token = LAST_INSERT_ID(token)
WHERE name = UNHEX(?) AND lease_id = UNHEX(?) AND token = ?
