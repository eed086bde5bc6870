-- Says that the one that was noted to wait for a name, since then, does so no more: the name, since when; see want.sql.
UPDATE sqllock_lock SET wanted_until = NULL
WHERE name = (
  SELECT name FROM (
    SELECT name FROM sqllock_lock WHERE name = UNHEX(?) AND wanted_since = ? LIMIT 1 FOR UPDATE SKIP LOCKED
  ) free
)
