-- Takes a share of the lock $1 of the transaction if nobody has it alone. On a standby nothing
-- is taken: CASE stops before.
SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN 'standby'
            WHEN pg_catalog.pg_try_advisory_xact_lock_shared($1) THEN 'taken'
            ELSE 'held'
       END
