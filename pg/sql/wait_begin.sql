-- Sets the parameters of wait.sql: $1 the key, $2 how many milliseconds it may take, $3 whether the session holds the gate.
-- From now on the server ends a session that is silent for $4; it is empty if the server has no idle_session_timeout.
SELECT set_config('sqllock.key', $1, false),
       set_config('sqllock.slice', $2, false),
       set_config('sqllock.gated', $3, false),
       set_config('sqllock.taken', 'no', false),
       set_config('lock_timeout', $2, true),
       CASE WHEN $4 <> '' THEN set_config('idle_session_timeout', $4, false) END
