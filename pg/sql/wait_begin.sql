-- Sets the parameters of wait.sql: $1 the key, $2 how many milliseconds it may wait for the gate, $4 how many in all once
-- it has the gate, and $5 the seat of the session, which may be empty. From now on the server ends a session that is silent
-- for $3; it is empty if the server has no idle_session_timeout.
SELECT set_config('sqllock.key', $1, false),
       set_config('sqllock.gate', hashtextextended($1, 1)::text, false),
       set_config('sqllock.slice', $4, false),
       set_config('sqllock.gated', 'false', false),
       set_config('sqllock.seat', $5, false),
       set_config('sqllock.taken', 'no', false),
       set_config('lock_timeout', $2, true),
       CASE WHEN $3 <> '' THEN set_config('idle_session_timeout', $3, false) END
