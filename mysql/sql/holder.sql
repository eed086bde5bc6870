-- Who holds the lock. Without the PROCESS privilege only one's own connections are shown.
SELECT h.id, COALESCE(p.HOST, '')
FROM (SELECT IS_USED_LOCK(?) AS id) h
LEFT JOIN information_schema.PROCESSLIST p ON p.ID = h.id
