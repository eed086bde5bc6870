-- Returns what this connection really talks to. It changes nothing: behind a pooler the session is somebody else's. The
-- oid of the database is read here and not with each read of a lock: to read pg_database takes a lock, and the server
-- may have none left.
SELECT (SELECT oid FROM pg_database WHERE datname = current_database()),
       pg_backend_pid(),
       pg_is_in_recovery(),
       pg_catalog.current_setting('server_version_num')::int,
       version()
