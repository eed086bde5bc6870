-- The time of the database in microseconds since 1970.
CAST(unixepoch('subsec') * 1000000 AS INTEGER)
