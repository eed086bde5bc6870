-- Takes and gives back many keys, in their order. $1 has the kind of operation for each of the keys $2. A pair of int
-- keys is the two halves of a bigint. A share cannot be taken while a waiter for the exclusive lock is at the gate, see
-- wait.sql. The gate comes second: an error, for want of room, then leaves the key, which is given back after every
-- error, and not the gate.
-- Keeps I41, I48.
SELECT CASE kind
         WHEN 0 THEN pg_advisory_unlock(key)
         WHEN 1 THEN pg_try_advisory_lock(key)
         WHEN 2 THEN pg_advisory_unlock_shared(key)
         WHEN 3 THEN CASE
           WHEN NOT pg_try_advisory_lock_shared(key) THEN false
           WHEN pg_try_advisory_lock_shared(gate) THEN pg_advisory_unlock_shared(gate) -- which is true
           ELSE NOT pg_advisory_unlock_shared(key)
         END
         WHEN 4 THEN pg_advisory_unlock((key >> 32)::int, (key << 32 >> 32)::int)
         WHEN 5 THEN pg_try_advisory_lock((key >> 32)::int, (key << 32 >> 32)::int)
         WHEN 6 THEN pg_advisory_unlock_shared((key >> 32)::int, (key << 32 >> 32)::int)
         WHEN 7 THEN CASE
           WHEN NOT pg_try_advisory_lock_shared((key >> 32)::int, (key << 32 >> 32)::int) THEN false
           WHEN pg_try_advisory_lock_shared((gate >> 32)::int, (gate << 32 >> 32)::int)
             THEN pg_advisory_unlock_shared((gate >> 32)::int, (gate << 32 >> 32)::int)
           ELSE NOT pg_advisory_unlock_shared((key >> 32)::int, (key << 32 >> 32)::int)
         END
       END
FROM unnest($1::int[], $2::bigint[]) AS op (kind, key),
     LATERAL hashtextextended(key::text, 1) AS gate
