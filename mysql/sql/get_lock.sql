-- The other columns are those of ping.sql: whether the server is read-only when GET_LOCK has answered, and the session.
-- Keeps I49.
SELECT GET_LOCK(?, ?), @@GLOBAL.read_only /*!80000 OR @@GLOBAL.innodb_read_only */, CONNECTION_ID()
