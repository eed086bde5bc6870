-- Makes the row of a name that has none, for permits: the name, how many. add_permit.sql follows in the
-- same transaction.
INSERT IGNORE INTO sqllock_lock (name, token, permits, acquired_at)
VALUES (UNHEX(?), 1, ?, UTC_TIMESTAMP(6))
