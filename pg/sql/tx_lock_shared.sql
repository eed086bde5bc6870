-- Waits for a share of the lock $1 of the transaction. On a standby nothing is taken: CASE stops before.
SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN 'standby'
            ELSE 'taken' || pg_catalog.pg_advisory_xact_lock_shared($1)::text -- which is ''
       END
