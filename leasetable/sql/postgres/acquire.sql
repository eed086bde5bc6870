-- Takes the name $1 for the lease $2, and for who was noted to wait since $3, with the metadata $4, if it is absent or free, and neither kept after its release nor in places. What decides is read from the row
-- that the statement locks; the subquery only spares a busy name the write.
INSERT INTO sqllock_lock AS k (name, token, lease_id, acquired_at, metadata)
SELECT $1::bytea, 1, $2::bytea, clock_timestamp(), $4::bytea
WHERE NOT EXISTS (SELECT FROM sqllock_lock h WHERE h.name = $1 AND (h.lease_id IS NOT NULL OR h.places IS NOT NULL OR h.kept_until > clock_timestamp()))
ON CONFLICT (name) DO UPDATE
SET token = k.token + 1, lease_id = excluded.lease_id, acquired_at = clock_timestamp(), released_at = NULL, metadata = excluded.metadata,
    wanted_until = CASE WHEN k.wanted_since = $3 THEN NULL ELSE k.wanted_until END
WHERE k.lease_id IS NULL AND k.places IS NULL AND coalesce(k.kept_until <= clock_timestamp(), true)
RETURNING token
