-- Runs one slice of a wait in the server's queue: for the gate of the lock, and then for the lock. The blocks catch the
-- timeout, so that the server logs no error. The timeout bounds how long a virtual transaction is held: the holder's
-- CREATE INDEX CONCURRENTLY waits for every one that is older than itself.
--
-- The timeout can come just after the grant, and a session lock survives the error. The session holds nothing but the
-- lock that it waits for and its gate.
-- Keeps I47, I48.
DO $$
DECLARE
  kind int := current_setting('sqllock.kind'); -- as in many.sql
  shared boolean := kind & 2 > 0;
  pair boolean := kind & 4 > 0;
  key bigint := current_setting('sqllock.key');
  gate bigint := hashint8extended(key, 1);
  slice int := current_setting('sqllock.slice');
  began timestamptz := clock_timestamp();
BEGIN
  PERFORM set_config('lock_timeout', slice::text, true);
  IF NOT current_setting('sqllock.gated')::boolean THEN
    BEGIN
      CASE
        WHEN shared AND pair THEN PERFORM pg_advisory_lock_shared((gate >> 32)::int, (gate << 32 >> 32)::int);
        WHEN shared THEN PERFORM pg_advisory_lock_shared(gate);
        WHEN pair THEN PERFORM pg_advisory_lock((gate >> 32)::int, (gate << 32 >> 32)::int);
        ELSE PERFORM pg_advisory_lock(gate);
      END CASE;
    EXCEPTION WHEN lock_not_available THEN
      PERFORM pg_advisory_unlock_all();
      RETURN;
    END;
    PERFORM set_config('sqllock.gated', 'true', false);
    slice := slice - (extract(epoch FROM clock_timestamp() - began) * 1000)::int;
    PERFORM set_config('lock_timeout', greatest(slice, 1)::text, true);
  END IF;
  BEGIN
    CASE
      WHEN shared AND pair THEN PERFORM pg_advisory_lock_shared((key >> 32)::int, (key << 32 >> 32)::int);
      WHEN shared THEN PERFORM pg_advisory_lock_shared(key);
      WHEN pair THEN PERFORM pg_advisory_lock((key >> 32)::int, (key << 32 >> 32)::int);
      ELSE PERFORM pg_advisory_lock(key);
    END CASE;
  EXCEPTION WHEN lock_not_available THEN
    IF NOT EXISTS (
      SELECT FROM pg_locks
      WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted
        AND classid = ((key >> 32) & 4294967295)::oid AND objid = (key & 4294967295)::oid
        AND objsubid = CASE WHEN pair THEN 2 ELSE 1 END
    ) THEN
      RETURN;
    END IF;
  END;
  PERFORM set_config('sqllock.taken', 'yes', false), set_config('sqllock.gated', 'false', false);
  CASE
    WHEN shared AND pair THEN PERFORM pg_advisory_unlock_shared((gate >> 32)::int, (gate << 32 >> 32)::int);
    WHEN shared THEN PERFORM pg_advisory_unlock_shared(gate);
    WHEN pair THEN PERFORM pg_advisory_unlock((gate >> 32)::int, (gate << 32 >> 32)::int);
    ELSE PERFORM pg_advisory_unlock(gate);
  END CASE;
END
$$
