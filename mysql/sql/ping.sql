-- Returns whether the server is read-only, and so cannot be trusted with locks.
SELECT @@GLOBAL.read_only
