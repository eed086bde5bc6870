-- Makes the row of the name ?1, which has none, for ?2 permits. add_permit.sql follows in the same
-- transaction.
INSERT INTO sqllock_lock (name, token, permits, acquired_at)
VALUES (?1, 1, ?2, CAST(unixepoch('subsec') * 1000000 AS INTEGER))
ON CONFLICT (name) DO NOTHING
