-- Settings of a dedicated session. $1 is the session TTL in milliseconds, $2 the
-- application_name. Time limits meant for the application's statements must not hit ours.
SELECT set_config('idle_session_timeout', $1, false),
       set_config('application_name', $2, false),
       set_config('statement_timeout', '0', false),
       set_config('lock_timeout', '0', false),
       set_config('idle_in_transaction_session_timeout', '0', false),
       set_config('default_transaction_isolation', 'read committed', false),
       set_config('client_connection_check_interval', '0', false),
       (SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout') -- PostgreSQL 17
