-- Makes the row of a name that has none, for places: the name, how many. add_place.sql follows in the
-- same transaction.
INSERT IGNORE INTO sqllock_lock (name, token, places, acquired_at)
VALUES (UNHEX(?), 1, ?, UTC_TIMESTAMP(6))
