-- Acquires absent names. If one of them has a row, the statement fails with error 1062, and nothing is acquired.
-- Placeholders: <values> the rows: name, token 1, lease, metadata and time of each.
-- Keeps I6.
INSERT INTO sqllock_lock (name, token, lease_id, metadata, acquired_at)
VALUES {values}
