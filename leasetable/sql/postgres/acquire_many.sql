-- Takes names, each for a lease, if they are absent or free, and neither kept after their release nor in places, and
-- returns those that it took. They are given as a JSON list: name and lease in hex, two things for
-- release_many.sql, the metadata in hex. What decides is read from
-- the rows that the statement locks. It waits for no row that somebody else has locked, but for one
-- that is just being inserted; all who insert do so in the same order.
WITH asked AS (
  SELECT decode(a->>0, 'hex') AS name, decode(a->>1, 'hex') AS lease_id, decode(a->>4, 'hex') AS metadata
  FROM json_array_elements($1::text::json) a
), free AS (
  SELECT k.name, a.lease_id, a.metadata
  FROM asked a JOIN sqllock_lock k USING (name)
  WHERE k.lease_id IS NULL AND k.places IS NULL AND coalesce(k.kept_until <= clock_timestamp(), true)
  ORDER BY k.name
  FOR UPDATE OF k SKIP LOCKED
), taken AS (
  UPDATE sqllock_lock k
  SET token = k.token + 1, lease_id = free.lease_id, acquired_at = clock_timestamp(), released_at = NULL, metadata = free.metadata
  FROM free
  WHERE k.name = free.name AND k.lease_id IS NULL AND k.places IS NULL AND coalesce(k.kept_until <= clock_timestamp(), true)
  RETURNING k.name, k.token
), made AS (
  INSERT INTO sqllock_lock (name, token, lease_id, acquired_at, metadata)
  SELECT a.name, 1, a.lease_id, clock_timestamp(), a.metadata
  FROM asked a
  WHERE NOT EXISTS (SELECT FROM sqllock_lock h WHERE h.name = a.name)
  ORDER BY a.name
  ON CONFLICT (name) DO NOTHING
  RETURNING name, token
)
SELECT name, token, 0 FROM taken UNION ALL SELECT name, token, 0 FROM made
