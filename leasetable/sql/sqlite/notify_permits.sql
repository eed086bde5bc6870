-- Leaves word for the leases that have permits of the name ?1.
UPDATE sqllock_lease SET changes = changes + 1
WHERE id IN (SELECT lease_id FROM sqllock_permit WHERE name = ?1)
