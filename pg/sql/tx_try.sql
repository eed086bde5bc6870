-- Takes a lock of the transaction if it is free. $1 and $2 are as in many.sql. On a standby nothing is taken: CASE
-- stops before.
SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN 'standby'
            WHEN CASE $1::int
              WHEN 1 THEN pg_catalog.pg_try_advisory_xact_lock($2::bigint)
              WHEN 3 THEN pg_catalog.pg_try_advisory_xact_lock_shared($2::bigint)
              WHEN 5 THEN pg_catalog.pg_try_advisory_xact_lock(($2::bigint >> 32)::int, ($2::bigint << 32 >> 32)::int)
              WHEN 7 THEN pg_catalog.pg_try_advisory_xact_lock_shared(($2::bigint >> 32)::int, ($2::bigint << 32 >> 32)::int)
            END THEN 'taken'
            ELSE 'held'
       END
