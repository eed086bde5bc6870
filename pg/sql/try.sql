-- Takes a key if it is free, and waits for nothing.
-- Keeps I41.
SELECT pg_try_advisory_lock($1::bigint)
