-- The end of the minimum hold of a name k, or NULL. An infinity, which was written by hand, means for ever, but is no number.
CASE WHEN k.hold_until < 'infinity' THEN k.hold_until WHEN k.hold_until IS NOT NULL THEN timestamptz '2200-01-01Z' END
