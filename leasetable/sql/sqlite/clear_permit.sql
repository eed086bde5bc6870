-- Clears the permit of the name ?1 that the lease ?2 had with the token ?3, which is over for good.
DELETE FROM sqllock_permit WHERE name = ?1 AND lease_id = ?2 AND token = ?3
