-- Sets the connection to end, for kill.sql: MySQL allows no parameters in KILL.
SET @sqllock_name = ?, @sqllock_session = ?
