-- Holds for every name and lease id: because of the bounds a planner without statistics expects few rows, and uses the
-- index.
BETWEEN '' AND pg_catalog.decode(pg_catalog.repeat('ff', 1025), 'hex')
