package mysql

import "time"

// Refuse is refuse: the servers that it refuses are clusters, which a test does not start.
var Refuse = refuse

// WithHeartbeat has the Locker send heartbeats no more often than once in d.
func WithHeartbeat(d time.Duration) Option {
	return func(l *Locker) { l.idle = d }
}
