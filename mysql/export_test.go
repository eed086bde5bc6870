package mysql

import (
	"context"
	"net"
	"time"

	"github.com/sqllock/sqllock/internal/session"
)

// Refuse exports refuse: it refuses clusters, which a test does not start.
var Refuse = refuse

// Probe is the statement that reads the variables for Refuse.
var Probe = probeSQL

// IsReadOnly exports isReadOnly, for what servers answer that a test does not start.
var IsReadOnly = isReadOnly

// Open opens a connection as a session of l does.
func Open(ctx context.Context, l *Locker) (session.Conn[string], error) { return l.open(ctx) }

// Replace makes c a connection that began with another session than it has.
func Replace(c session.Conn[string]) { c.(*conn).id-- }

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
