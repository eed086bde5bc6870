SELECT id AS lease_id
FROM sqllock_lease
WHERE expires_at <= {now} - ?1
LIMIT ?2
