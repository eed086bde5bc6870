-- Acquires names that are still as free_many.sql found them.
-- Placeholders: <rows> the names with their tokens, <lease>, <metadata>.
-- Keeps I6, I8, I12, I22, I30, I35.
UPDATE sqllock_lock FORCE INDEX (PRIMARY)
SET token = token + 1, acquired_at = UTC_TIMESTAMP(6), released_at = NULL, metadata = {metadata}, lease_id = {lease}
WHERE (name, token) IN ({rows}) AND {free}
