-- The name of the database is part of a lock's name: every client has to read the same bytes.
-- A limit on the rows of a SELECT would hide some of the variables that are asked for next.
SET sql_select_limit = 18446744073709551615, NAMES utf8mb4
