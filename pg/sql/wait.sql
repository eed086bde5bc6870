-- Runs one slice of a wait in the server's queue: for the gate of the lock, and then for the lock. Go puts the settings in
-- the place of key and gate, and makes statements for shares, for pairs, and for a session that has the gate already. The
-- block catches the timeout, so that the server logs no error. The timeout bounds how long a virtual transaction is held:
-- the holder's CREATE INDEX CONCURRENTLY waits for every one that is older than itself. If the server finds that deadlock
-- before, the slice is over. Every expression is planned anew each time, so there are two, which are evaluated from left
-- to right, and no variables: FOUND says that the first one has come to its end.
--
-- The timeout can come just after a grant, and a session lock survives the error. So the session then tries once more for
-- what it waited for, which fails unless that happened, or it is free now. It may hold it twice then, so it gives all back,
-- its seat as well. The lock it takes once more.
-- The session holds nothing but the lock that it waits for, its gate and its seat.
-- Keeps I47, I48.
DO $$
BEGIN
  PERFORM pg_advisory_lock(gate);
  PERFORM set_config('lock_timeout', greatest(1, current_setting('sqllock.slice')::int
            - (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000)::int)::text, true),
          pg_advisory_lock(key), set_config('sqllock.taken', 'yes', false), pg_advisory_unlock(gate);
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
  IF FOUND THEN
    IF NOT pg_try_advisory_lock(key) THEN
      PERFORM set_config('sqllock.gated', 'true', false);
      RETURN;
    END IF;
    PERFORM pg_advisory_unlock_all(), set_config('sqllock.seat', '', false);
    PERFORM set_config('sqllock.taken', 'yes', false) WHERE pg_try_advisory_lock(key);
  ELSIF pg_try_advisory_lock(gate) THEN
    PERFORM pg_advisory_unlock_all(), set_config('sqllock.seat', '', false);
  END IF;
END
$$
