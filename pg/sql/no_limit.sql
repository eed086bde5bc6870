-- Before all others: a time limit meant for the application must not hit the setting of the limits.
SET statement_timeout = 0
