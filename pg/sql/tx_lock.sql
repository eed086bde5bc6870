-- Waits for a lock of the transaction. $1 and $2 are as in many.sql. On a standby nothing is taken: CASE stops before.
SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN 'standby'
            ELSE 'taken' || CASE $1::int -- and an empty text: the functions return void
              WHEN 1 THEN pg_catalog.pg_advisory_xact_lock($2::bigint)::text
              WHEN 3 THEN pg_catalog.pg_advisory_xact_lock_shared($2::bigint)::text
              WHEN 5 THEN pg_catalog.pg_advisory_xact_lock(($2::bigint >> 32)::int, ($2::bigint << 32 >> 32)::int)::text
              WHEN 7 THEN pg_catalog.pg_advisory_xact_lock_shared(($2::bigint >> 32)::int, ($2::bigint << 32 >> 32)::int)::text
            END
       END
