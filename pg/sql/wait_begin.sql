-- Sets the parameters of wait.sql: $1 and $2 as in many.sql, $3 how many milliseconds it may take, $4 whether the
-- session holds the gate.
SELECT set_config('sqllock.kind', $1, false),
       set_config('sqllock.key', $2, false),
       set_config('sqllock.slice', $3, false),
       set_config('sqllock.gated', $4, false),
       set_config('sqllock.taken', 'no', false)
