-- Returns every GET_LOCK name that somebody holds. Without the PROCESS privilege only the user's own connections have
-- an address. MySQL's information_schema.PROCESSLIST fails while any session's statement has a parameter that is not
-- UTF-8.
SELECT m.OBJECT_NAME, COALESCE(t.PROCESSLIST_ID, 0), COALESCE(a.ATTR_VALUE, ''), COALESCE(p.HOST, ''),
       (SELECT COUNT(*) FROM performance_schema.metadata_locks w
        WHERE w.OBJECT_TYPE = 'USER LEVEL LOCK' AND w.OBJECT_NAME = m.OBJECT_NAME AND w.LOCK_STATUS = 'PENDING')
FROM performance_schema.metadata_locks m
LEFT JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID
LEFT JOIN performance_schema.session_connect_attrs a
  ON a.PROCESSLIST_ID = t.PROCESSLIST_ID AND a.ATTR_NAME = 'program_name'
LEFT JOIN /*!80022 performance_schema.processlist */ /*M! information_schema.PROCESSLIST */ p ON p.ID = t.PROCESSLIST_ID
WHERE m.OBJECT_TYPE = 'USER LEVEL LOCK' AND m.LOCK_STATUS = 'GRANTED'
ORDER BY m.OBJECT_NAME
