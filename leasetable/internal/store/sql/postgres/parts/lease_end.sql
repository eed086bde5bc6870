-- The end of a lease l, or NULL. An infinity, which was written by hand, is no number, nor is every time: it counts as one of
-- the bounds.
CASE WHEN l.expires_at IS NOT NULL THEN least(greatest(l.expires_at, timestamptz '1970-01-01Z'), timestamptz '2200-01-01Z') END
