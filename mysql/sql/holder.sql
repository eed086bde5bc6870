-- Returns the holder of the lock. Without the PROCESS privilege only the user's own connections are shown. MySQL's
-- information_schema.PROCESSLIST fails while any session's statement has a parameter that is not UTF-8.
SELECT h.id, COALESCE(p.HOST, '')
FROM (SELECT IS_USED_LOCK(?) AS id) h
LEFT JOIN /*!80022 performance_schema.processlist */ /*M! information_schema.PROCESSLIST */ p ON p.ID = h.id
