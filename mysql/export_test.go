package mysql

import (
	"context"
	"net"
	"time"
)

// Refuse is refuse: the servers that it refuses are clusters, which a test does not start.
var Refuse = refuse

// WithHeartbeat has the Locker send heartbeats no more often than once in d.
func WithHeartbeat(d time.Duration) Option {
	return func(l *Locker) { l.idle = d }
}

// Watch watches a socket as that of a session is: the function returns what session.Conn's Watch does. It is nil if the
// socket cannot be watched.
func Watch(socket net.Conn) func(context.Context) error {
	w := newWatcher(socket)
	if w == nil {
		return nil
	}
	return (&conn{watcher: w}).Watch
}
