-- What this connection really talks to. It changes nothing: behind a pooler the session is
-- somebody else's.
SELECT pg_backend_pid(),
       pg_is_in_recovery(),
       current_setting('server_version_num')::int,
       version()
