SELECT lowest FROM sqllock_version WHERE lowest > ?1 LIMIT 1
