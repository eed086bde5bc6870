-- Gives back everything that the session holds.
SELECT pg_advisory_unlock_all()
