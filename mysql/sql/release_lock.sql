-- The second column is the session, as in get_lock.sql.
SELECT RELEASE_LOCK(?), CONNECTION_ID()
