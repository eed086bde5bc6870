-- Time limits meant for the application's statements must not hit ours.
SET SESSION max_statement_time = 0
