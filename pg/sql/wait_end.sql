SELECT current_setting('sqllock.taken'), current_setting('sqllock.gated')
