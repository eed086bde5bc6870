-- Returns whether the slice has taken the lock, whether it keeps the gate, its seat, and what ping.sql returns. Who has the
-- lock gives the seat back.
-- Keeps I49.
SELECT current_setting('sqllock.taken'), current_setting('sqllock.gated'), current_setting('sqllock.seat'),
       pg_is_in_recovery(), pg_backend_pid(),
       CASE WHEN current_setting('sqllock.taken') = 'yes' AND current_setting('sqllock.seat') <> ''
            THEN pg_advisory_unlock(current_setting('sqllock.seat')::bigint) END
