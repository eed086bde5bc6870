-- Returns whether the server is a standby, which cannot be trusted with locks, and the process of the session.
-- Keeps I49.
SELECT pg_is_in_recovery(), pg_backend_pid()
