-- The parameter is the session TTL in whole seconds.
-- Keeps I3.
SET SESSION wait_timeout = ?
