-- Takes the names $1, an array as text, for the lease $2 with the metadata $3 as acquire_many.sql does, and those that are
-- absent as well. What decides is read from the rows that the
-- statement locks. It leaves out rows that somebody else has locked, and waits for none but one that is just being inserted; if one
-- takes more than 100 ms, nothing is taken. All who insert do so in the same order, and insert no name that they see: that would wait for
-- whoever changes its row. The table is looked up as in acquire_many.sql, and never joined.
WITH free AS (
  SELECT k.name
  FROM sqllock_lock k
  WHERE k.name = ANY ($1::text::bytea[]) AND k.name BETWEEN '' AND decode(repeat('ff', 1025), 'hex')
    AND k.lease_id IS NULL AND k.permits IS NULL AND coalesce(k.hold_until <= clock_timestamp(), true)
  FOR UPDATE SKIP LOCKED
), taken AS (
  UPDATE sqllock_lock k
  SET token = k.token + 1, lease_id = $2, acquired_at = clock_timestamp(), released_at = NULL, metadata = $3
  WHERE k.name = ANY (ARRAY(SELECT free.name FROM free)) AND k.name BETWEEN '' AND decode(repeat('ff', 1025), 'hex')
    AND k.lease_id IS NULL AND k.permits IS NULL AND coalesce(k.hold_until <= clock_timestamp(), true)
  RETURNING k.name, k.token
), made AS (
  INSERT INTO sqllock_lock (name, token, lease_id, acquired_at, metadata)
  SELECT a.name, 1, $2, clock_timestamp(), $3
  FROM unnest($1::text::bytea[]) a (name), set_config('lock_timeout', '100', true)
  WHERE a.name NOT IN (
    SELECT k.name FROM sqllock_lock k WHERE k.name = ANY ($1::text::bytea[]) AND k.name BETWEEN '' AND decode(repeat('ff', 1025), 'hex')
  )
  ORDER BY a.name
  ON CONFLICT (name) DO NOTHING
  RETURNING name, token
)
SELECT encode(name, 'hex'), token, 0 FROM taken UNION ALL SELECT encode(name, 'hex'), token, 0 FROM made
