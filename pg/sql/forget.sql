-- Gives back everything.
SELECT pg_advisory_unlock_all()
