UPDATE sqllock_lock SET waiter_until = NULL WHERE name = ?1 AND waiter_since = ?2
