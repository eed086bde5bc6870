-- What one relation ($1, quoted and qualified as needed) is made of, and
-- whether the schema it belongs in ($2, '' for the search path) exists.
-- pg_catalog, not information_schema, for that hides what the role may not use. It is named where somebody else's function
-- or operator in the search path could be taken.
SELECT 'place' AS item, '' AS name, '' AS type, false AS nullable, false AS has_default
WHERE CASE WHEN $2::text = '' THEN current_schema() IS NOT NULL
           ELSE EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $2::text) END
UNION ALL
SELECT 'table', '',
       CASE WHEN c.relkind <> 'r' THEN 'not an ordinary table'
            WHEN c.relpersistence = 'u' THEN 'unlogged, so a crash empties it and tokens start again'
            WHEN c.relpersistence = 't' THEN 'temporary, so no other session sees it'
            WHEN pg_catalog.row_security_active(c.oid) THEN 'under row security for this role, which may hide rows from it (DISABLE ROW LEVEL SECURITY, or give the role BYPASSRLS)'
            ELSE '' END,
       false, false
FROM pg_catalog.pg_class c
WHERE c.oid = to_regclass($1::text)::oid
UNION ALL
-- The schema of a relation of that name that the search path names and this role may not use. PostgreSQL passes over it,
-- as if it were not in the search path.
SELECT 'hidden', pg_catalog.quote_ident(n.nspname), '', false, false
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE $2::text = '' AND to_regclass($1::text) IS NULL AND c.relname::text = pg_catalog.btrim($1::text, '"')
  AND NOT pg_catalog.has_schema_privilege(n.oid, 'USAGE')
  AND EXISTS (SELECT 1 FROM pg_catalog.unnest(pg_catalog.string_to_array(
                pg_catalog.replace(pg_catalog.current_setting('search_path'), '$user', current_user), ',')) path (entry)
              WHERE n.nspname::text IN (pg_catalog.btrim(entry, ' "'), lower(btrim(entry))))
UNION ALL
SELECT 'column', a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), NOT (a.attnotnull OR t.typnotnull),
       a.atthasdef OR a.attidentity <> '' OR t.typdefault IS NOT NULL
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = to_regclass($1::text)::oid AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'primary', a.attname, '', false, false
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
WHERE i.indrelid = to_regclass($1::text)::oid AND i.indisprimary AND i.indisvalid
