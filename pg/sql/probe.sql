-- What this connection really talks to. It changes nothing: behind a pooler the session is
-- somebody else's. The database's oid is asked for here and not each time a lock is looked for: to
-- read pg_database takes a lock, of which the server may have no more.
SELECT (SELECT oid FROM pg_database WHERE datname = current_database()),
       pg_backend_pid(),
       pg_is_in_recovery(),
       current_setting('server_version_num')::int,
       version()
