-- Is this still a server that can be trusted with locks?
SELECT pg_is_in_recovery()
