-- Inserts an absent name, for shares or permits. add_permit.sql follows in the same transaction.
-- Parameters: ?1 name, ?2 limit of permits.
INSERT IGNORE INTO sqllock_lock (name, token, permits, acquired_at)
VALUES (UNHEX(?1), 1, ?2, UTC_TIMESTAMP(6))
