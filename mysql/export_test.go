package mysql

import (
	"context"
	"net"
	"time"
)

// Refuse exports refuse: it refuses clusters, which a test does not start.
var Refuse = refuse

// IsReadOnly exports isReadOnly, for what servers answer that a test does not start.
var IsReadOnly = isReadOnly

// WithHeartbeat makes the Locker send heartbeats at most once in d.
func WithHeartbeat(d time.Duration) Option {
	return func(s *settings) { s.idle = d }
}

// Watch watches a socket like that of a session. The returned function returns what Watch of session.Conn returns. It
// is nil if the socket cannot be watched.
func Watch(socket net.Conn) func(context.Context) error {
	w := newWatcher(socket)
	if w == nil {
		return nil
	}
	return (&conn{watcher: w}).Watch
}
