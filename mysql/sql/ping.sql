-- Returns whether the server is read-only, and so cannot be trusted with locks, and the session. AWS documents that a
-- reader of Aurora is known by innodb_read_only. On MariaDB that cannot change while the server runs, and is missing without
-- InnoDB: there the probe of a new session is enough.
-- Keeps I49.
SELECT @@GLOBAL.read_only /*!80000 OR @@GLOBAL.innodb_read_only */, CONNECTION_ID()
