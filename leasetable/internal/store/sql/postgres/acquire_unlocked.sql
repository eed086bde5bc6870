-- Acquires names as acquire_many.sql does, and inserts the absent ones. The condition is decided on the rows that the
-- statement locks. It skips rows that other sessions have locked, and waits only for a row that is just being inserted:
-- if that takes more than 100 ms, nothing is acquired. All sessions insert in the same order. They do not insert a name
-- whose row they see, because the insert would wait for a session that changes that row. No condition on
-- names is a join: see parts/named.sql.
-- Parameters: $1 names (array as text), $2 lease id, $3 metadata.
-- Keeps I6, I12, I22, I30, I35.
WITH free AS (
  SELECT k.name
  FROM sqllock_lock k
  WHERE {named} AND {free}
  FOR UPDATE SKIP LOCKED
), taken AS (
  UPDATE sqllock_lock k
  SET token = k.token + 1, lease_id = $2, acquired_at = clock_timestamp(), released_at = NULL, metadata = $3
  WHERE k.name = ANY (ARRAY(SELECT free.name FROM free)) AND k.name {bounded} AND {free}
  RETURNING k.name, k.token
), made AS (
  INSERT INTO sqllock_lock (name, token, lease_id, acquired_at, metadata)
  SELECT a.name, 1, $2, clock_timestamp(), $3
  FROM pg_catalog.unnest($1::text::bytea[]) a (name), pg_catalog.set_config('lock_timeout', '100', true)
  WHERE a.name NOT IN (
    SELECT k.name FROM sqllock_lock k WHERE {named}
  )
  ORDER BY a.name
  ON CONFLICT (name) DO NOTHING
  RETURNING name, token
)
SELECT pg_catalog.encode(name, 'hex'), token, 0 FROM taken UNION ALL SELECT pg_catalog.encode(name, 'hex'), token, 0 FROM made
