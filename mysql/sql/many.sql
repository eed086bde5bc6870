-- Takes and gives back many locks, in their order. The parameter is a JSON list of pairs: whether to take the lock, and
-- its name. The other columns are those of get_lock.sql.
-- Keeps I41, I49.
SELECT CASE WHEN take THEN GET_LOCK(name, 0) ELSE RELEASE_LOCK(name) END,
       @@GLOBAL.read_only /*!80000 OR @@GLOBAL.innodb_read_only */, CONNECTION_ID()
FROM JSON_TABLE(?, '$[*]' COLUMNS (take BOOLEAN PATH '$[0]', name VARCHAR(64) PATH '$[1]')) AS ops
