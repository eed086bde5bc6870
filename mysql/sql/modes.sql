-- Runs before all others, so that none depends on the settings that the DSN or the server gives a session. The name of
-- the database is part of a lock's name, so every client has to read the same bytes. A limit on the rows of a SELECT
-- would hide some of the variables that are read next. A connection with autocommit off would hold a transaction open.
-- Time limits meant for the application's statements must not hit ours.
SET sql_mode = TRADITIONAL, NAMES utf8mb4, sql_select_limit = 18446744073709551615, sql_big_selects = 1, autocommit = 1
/*!80000 , max_execution_time = 0 */ /*M! , max_statement_time = 0 */
