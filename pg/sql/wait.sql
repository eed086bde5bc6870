-- One slice of a wait in the server's queue. The block catches the timeout, so that it is no
-- error in the server's log, and bounds how long a virtual transaction is held: the holder's
-- CREATE INDEX CONCURRENTLY waits for every one that is older than itself.
--
-- The timeout can meet the grant, and a session lock survives the error: whatever the session
-- holds by then is given back. It holds nothing else.
DO $$
BEGIN
  PERFORM set_config('lock_timeout', '400ms', true);
  PERFORM pg_advisory_lock(current_setting('sqllock.key')::bigint);
  PERFORM set_config('sqllock.taken', 'yes', false);
EXCEPTION WHEN lock_not_available THEN
  PERFORM pg_advisory_unlock_all();
END
$$
