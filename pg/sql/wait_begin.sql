SELECT set_config('sqllock.key', $1, false), set_config('sqllock.taken', 'no', false)
