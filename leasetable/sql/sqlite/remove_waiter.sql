-- Says that the one that was noted to wait for the name ?1 since ?2 does so no more.
UPDATE sqllock_lock SET waiter_until = NULL WHERE name = ?1 AND waiter_since = ?2
