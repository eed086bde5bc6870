package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// WithoutRefusals lets the Locker use any server and any pooler: what then goes wrong is what
// the refusals are for.
func WithoutRefusals() Option {
	return func(l *Locker) { l.admit = func(context.Context, *pgx.Conn, *server) error { return nil } }
}

// AsBefore14 has the Locker take the server for one without idle_session_timeout.
func AsBefore14() Option {
	return func(l *Locker) {
		l.admit = func(_ context.Context, _ *pgx.Conn, is *server) error {
			is.version = hasSessionTimeout - 1
			return nil
		}
	}
}

// WithHeartbeat has the Locker send heartbeats no more often than once in d.
func WithHeartbeat(d time.Duration) Option {
	return func(l *Locker) { l.idle = d }
}
