UPDATE sqllock_permit p JOIN sqllock_lease l ON l.id = p.lease_id
SET l.changes = l.changes + 1
WHERE p.name = UNHEX(?1)
