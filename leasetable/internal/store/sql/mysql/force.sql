UPDATE sqllock_lock k LEFT JOIN sqllock_lease l ON l.id = k.lease_id
SET k.lease_id = NULL, k.token = k.token + 1, k.released_at = UTC_TIMESTAMP(6), k.hold_until = NULL, l.changes = l.changes + 1
WHERE k.name = UNHEX(?1) AND k.lease_id <=> UNHEX(?2) AND k.token = ?3
