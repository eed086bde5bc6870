-- Returns whether the slice has taken the lock, whether it keeps the gate, and what ping.sql returns.
-- Keeps I49.
SELECT current_setting('sqllock.taken'), current_setting('sqllock.gated'), pg_is_in_recovery(), pg_backend_pid()
