-- Says that the one that was noted to wait for a name, since then, does so no more: the name, since when.
UPDATE sqllock_lock SET wanted_until = NULL WHERE name = UNHEX(?) AND wanted_since = ?
