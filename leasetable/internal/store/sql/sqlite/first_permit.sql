-- Inserts an absent name, for shares or permits. add_permit.sql follows in the same transaction.
-- Parameters: ?1 name, ?2 limit of permits.
INSERT INTO sqllock_lock (name, token, permits, acquired_at)
VALUES (?1, 1, ?2, {now})
ON CONFLICT (name) DO NOTHING
