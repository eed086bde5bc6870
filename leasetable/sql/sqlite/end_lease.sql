-- Ends the lease ?1. What still refers to it is free to be taken over.
DELETE FROM sqllock_lease WHERE id = ?1
