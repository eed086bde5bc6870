-- Holds for the names $1. The condition is = ANY, not a join with a function of many rows, so that no plan, however old,
-- compares every name with every row.
name = ANY ($1::text::bytea[]) AND name {bounded}
