package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// WithoutRefusals makes the Locker accept any server and any pooler. What then goes wrong is the reason for the
// refusals.
func WithoutRefusals() Option {
	return func(l *Locker) { l.admit = func(context.Context, *pgx.Conn, *server) error { return nil } }
}

// AsBefore14 makes the Locker treat the server as one without idle_session_timeout.
func AsBefore14() Option {
	return func(l *Locker) {
		l.admit = func(_ context.Context, _ *pgx.Conn, is *server) error {
			is.version = hasSessionTimeout - 1
			return nil
		}
	}
}

// WithHeartbeat makes the Locker send heartbeats at most once in d.
func WithHeartbeat(d time.Duration) Option {
	return func(l *Locker) { l.idle = d }
}

// The statements of a wait, and the one that gives back what it took.
var (
	WaitBegin = waitBeginSQL
	WaitEnd   = waitEndSQL
	Many      = manySQL
)

// KindTry is the difference between the kind that takes a key and the one that gives it back.
const KindTry = kindTry

// Waits has the statements of waits of a session that has no gate, by the kind of the lock.
func Waits() map[int64]string {
	all := make(map[int64]string)
	for k, text := range waits {
		if !k.gated {
			all[k.kind] = text
		}
	}
	return all
}
