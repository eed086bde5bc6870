-- What one table (?1) of the main database is made of.
SELECT 'place' AS item, '' AS name, '' AS type, 0 AS nullable, 0 AS has_default
UNION ALL
SELECT 'table', '', CASE WHEN type = 'table' THEN '' ELSE 'not an ordinary table' END, 0, 0
FROM main.sqlite_master
WHERE name = ?1 COLLATE NOCASE AND type IN ('table', 'view')
UNION ALL
SELECT 'column', name, type, NOT "notnull", dflt_value IS NOT NULL
FROM pragma_table_info(?1, 'main')
UNION ALL
SELECT 'primary', name, '', 0, 0
FROM pragma_table_info(?1, 'main')
WHERE pk > 0
