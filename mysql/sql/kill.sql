-- Ends a connection if it still holds the lock. Otherwise it fails: there is no thread 0.
-- Keeps I50.
KILL CONNECTION IF(IS_USED_LOCK(@sqllock_name) = @sqllock_session, @sqllock_session, 0)
