SELECT set_config('sqllock.kind', $1, false), set_config('sqllock.key', $2, false), set_config('sqllock.taken', 'no', false)
