-- Is this still a server that can be trusted with locks, and the session that holds them?
SELECT pg_is_in_recovery(), pg_backend_pid()
