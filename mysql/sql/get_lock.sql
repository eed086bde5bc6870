-- The second column says, as in ping.sql, whether the server is read-only when GET_LOCK has answered.
-- Keeps I49.
SELECT GET_LOCK(?, ?), @@GLOBAL.read_only /*!80000 OR @@GLOBAL.innodb_read_only */
