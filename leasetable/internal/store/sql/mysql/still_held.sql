-- Reads which of the given names a lease holds, as a whole or by a share or permit, and their tokens.
-- Placeholders: <names>, <lease>.
-- Keeps I20.
SELECT name, token, FALSE AS permit FROM sqllock_lock FORCE INDEX (PRIMARY) WHERE name IN ({names}) AND lease_id = {lease}
UNION ALL
SELECT name, token, TRUE FROM sqllock_permit FORCE INDEX (PRIMARY) WHERE name IN ({names}) AND lease_id = {lease}
