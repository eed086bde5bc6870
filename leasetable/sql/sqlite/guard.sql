-- Reads that the lease ?2 holds the name ?1 with the token ?3. A transaction that has read it
-- cannot write any more once somebody else has taken the name.
SELECT 1 FROM sqllock_lock WHERE name = ?1 AND lease_id = ?2 AND token = ?3
