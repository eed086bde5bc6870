-- Says that somebody in another process waits for a name, if that is held: since when, in microseconds
-- since 1970, and that again; for how many microseconds that is to be believed; the name. Of those who
-- wait the one stays noted who has waited longest. It is assigned from left to right. It is a hint, and does not wait
-- for a row that somebody has locked: a transaction that its holder guards may last.
UPDATE sqllock_lock
SET wanted_since = IF(wanted_until > UTC_TIMESTAMP(6), LEAST(wanted_since, ?), ?),
    wanted_until = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE name = (
  SELECT name FROM (
    SELECT name FROM sqllock_lock WHERE name = UNHEX(?) AND lease_id IS NOT NULL LIMIT 1 FOR UPDATE SKIP LOCKED
  ) free
)
