-- Returns the program_name of the connection, the first parameter, and the number of waiters for the lock, the second.
SELECT COALESCE((SELECT MAX(ATTR_VALUE) FROM performance_schema.session_connect_attrs
                 WHERE PROCESSLIST_ID = ? AND ATTR_NAME = 'program_name'), ''),
       (SELECT COUNT(*) FROM performance_schema.metadata_locks
        WHERE OBJECT_TYPE = 'USER LEVEL LOCK' AND OBJECT_NAME = ? AND LOCK_STATUS = 'PENDING')
