-- What one table (its name, three times) of the current database is made of, and
-- whether there is a current database. The names are compared for equality,
-- for only then does MariaDB open one table and not all of them. The session may have
-- limited the rows of a SELECT that has no limit, and literals may be in any character set.
SELECT 'place' AS item, '' AS name, '' AS type, 0 AS nullable, 0 AS has_default
FROM DUAL
WHERE DATABASE() IS NOT NULL
UNION ALL
SELECT 'table', '',
       CASE WHEN table_type <> _ascii'BASE TABLE' THEN 'not an ordinary table'
            WHEN engine <> _ascii'InnoDB' THEN CONCAT('stored by ', engine, ', not by InnoDB, and needs transactions')
            ELSE '' END,
       0, 0
FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name = ?
UNION ALL
SELECT 'column', column_name, column_type, is_nullable = _ascii'YES',
       column_default IS NOT NULL OR COALESCE(extra LIKE _ascii'%auto_increment%' OR extra LIKE _ascii'%GENERATED%', 0)
FROM information_schema.columns
WHERE table_schema = DATABASE() AND table_name = ?
UNION ALL
-- All columns that the primary key has as a whole, not by a prefix.
SELECT 'primary', column_name, '', 0, 0
FROM information_schema.statistics
WHERE table_schema = DATABASE() AND table_name = ? AND index_name = _ascii'PRIMARY' AND sub_part IS NULL
LIMIT 10000
