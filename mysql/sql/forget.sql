-- Gives back everything that the session holds.
DO RELEASE_ALL_LOCKS()
