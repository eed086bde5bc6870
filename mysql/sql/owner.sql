-- Returns the program_name of the connection. Everybody may read this table, which shows connections of the same account.
SELECT COALESCE(MAX(ATTR_VALUE), '')
FROM performance_schema.session_account_connect_attrs
WHERE PROCESSLIST_ID = ? AND ATTR_NAME = 'program_name'
