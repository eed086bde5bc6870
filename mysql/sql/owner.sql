-- What the connection calls itself. Everybody may read this table; it shows one's own account's connections.
SELECT COALESCE(MAX(ATTR_VALUE), '')
FROM performance_schema.session_account_connect_attrs
WHERE PROCESSLIST_ID = ? AND ATTR_NAME = 'program_name'
