-- Time limits meant for the application's statements must not hit ours.
SET SESSION max_execution_time = 0
