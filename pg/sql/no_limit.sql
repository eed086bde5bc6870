-- Runs as soon as the server is known: a time limit meant for the application must not hit the statement that sets the
-- limits.
SET statement_timeout = 0
