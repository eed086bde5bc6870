-- Leaves word for the leases that have places of the name ?1.
UPDATE sqllock_lease SET changes = changes + 1
WHERE id IN (SELECT lease_id FROM sqllock_place WHERE name = ?1)
