-- Reads that the lease ?2 has the permit of the name ?1 with the token ?3; see guard.sql.
SELECT 1 FROM sqllock_permit WHERE name = ?1 AND lease_id = ?2 AND token = ?3
