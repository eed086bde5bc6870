-- The parameter is the session TTL in whole seconds.
SET SESSION wait_timeout = ?
