-- Takes and gives back many keys, in their order. $1 says which of the keys $2 are to be taken.
SELECT CASE WHEN take THEN pg_try_advisory_lock(key) ELSE pg_advisory_unlock(key) END
FROM unnest($1::boolean[], $2::bigint[]) AS op (take, key)
