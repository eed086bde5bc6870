-- Settings of a dedicated session. The parameter is the session TTL in whole seconds. A
-- connection with autocommit off would hold a transaction open.
SET SESSION wait_timeout = ?, SESSION autocommit = 1
