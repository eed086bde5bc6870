-- Gives back everything.
DO RELEASE_ALL_LOCKS()
