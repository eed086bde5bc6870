-- One slice of a wait in the server's queue. The block catches the timeout, so that it is no
-- error in the server's log, and bounds how long a virtual transaction is held: the holder's
-- CREATE INDEX CONCURRENTLY waits for every one that is older than itself.
--
-- The timeout can meet the grant, and a session lock survives the error: whatever the session
-- holds by then is given back. It holds nothing else.
DO $$
DECLARE
  key bigint := current_setting('sqllock.key');
BEGIN
  PERFORM set_config('lock_timeout', '400ms', true);
  CASE current_setting('sqllock.kind')::int -- as in many.sql
    WHEN 1 THEN PERFORM pg_advisory_lock(key);
    WHEN 3 THEN PERFORM pg_advisory_lock_shared(key);
    WHEN 5 THEN PERFORM pg_advisory_lock((key >> 32)::int, (key << 32 >> 32)::int);
    WHEN 7 THEN PERFORM pg_advisory_lock_shared((key >> 32)::int, (key << 32 >> 32)::int);
  END CASE;
  PERFORM set_config('sqllock.taken', 'yes', false);
EXCEPTION WHEN lock_not_available THEN
  PERFORM pg_advisory_unlock_all();
END
$$
