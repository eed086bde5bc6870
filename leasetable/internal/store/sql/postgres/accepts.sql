-- Returns a row if the tables require a program that knows a later version.
-- Parameters: $1 version that the program knows.
SELECT lowest FROM sqllock_version WHERE lowest > $1::bigint LIMIT 1
