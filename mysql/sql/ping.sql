-- Returns whether the server is read-only, and so cannot be trusted with locks.
-- Keeps I49.
SELECT @@GLOBAL.read_only
