-- Runs one slice of a wait in the server's queue: for the gate of the lock, and then for the lock. Go makes statements
-- for shares and for pairs of it. The blocks catch the timeout, so that the server logs no error. The timeout
-- bounds how long a virtual transaction is held: the holder's CREATE INDEX CONCURRENTLY waits for every one that is older
-- than itself. Every expression is planned anew each time, so there are few.
--
-- The timeout can come just after the grant, and a session lock survives the error. So the session then tries for the key
-- once more, which fails unless that happened, or the key is free now. It may hold the key twice then, so it gives all back
-- and takes the key once.
-- The session holds nothing but the lock that it waits for and its gate.
-- Keeps I47, I48.
DO $$
DECLARE
  key bigint := current_setting('sqllock.key');
  gate bigint := hashint8extended(key, 1);
BEGIN
  IF current_setting('sqllock.gated') = 'false' THEN
    BEGIN
      PERFORM pg_advisory_lock(gate);
    EXCEPTION WHEN lock_not_available THEN
      PERFORM pg_advisory_unlock_all();
      RETURN;
    END;
    PERFORM set_config('sqllock.gated', 'true', false),
            set_config('lock_timeout', greatest(1, current_setting('sqllock.slice')::int
              - (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000)::int)::text, true);
  END IF;
  BEGIN
    PERFORM pg_advisory_lock(key);
  EXCEPTION WHEN lock_not_available THEN
    IF NOT pg_try_advisory_lock(key) THEN
      RETURN;
    END IF;
    PERFORM pg_advisory_unlock_all(), set_config('sqllock.gated', 'false', false);
    IF pg_try_advisory_lock(key) THEN
      PERFORM set_config('sqllock.taken', 'yes', false);
    END IF;
    RETURN;
  END;
  PERFORM set_config('sqllock.taken', 'yes', false), set_config('sqllock.gated', 'false', false), pg_advisory_unlock(gate);
END
$$
