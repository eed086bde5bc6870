-- 1, or 2 on a server that is read-only. read_only is a text on MariaDB 12. The session may have a character set of two
-- bytes: see guard.sql.
IF(CONVERT(@@GLOBAL.read_only /*!80000 OR @@GLOBAL.innodb_read_only */ USING ascii) IN (_ascii'0', _ascii'OFF'), 1, 2)
