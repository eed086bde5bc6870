-- The name of the database is part of a lock's name: every client has to read the same bytes.
SET NAMES utf8mb4
