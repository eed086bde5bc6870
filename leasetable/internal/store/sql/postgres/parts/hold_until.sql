-- The end of the minimum hold of a name k, or NULL; see lease_end.sql.
CASE WHEN k.hold_until IS NOT NULL THEN least(greatest(k.hold_until, timestamptz '1970-01-01Z'), timestamptz '2200-01-01Z') END
