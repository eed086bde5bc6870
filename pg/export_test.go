package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// WithoutRefusals makes the Locker accept any server and any pooler. What then goes wrong is the reason for the
// refusals.
func WithoutRefusals() Option {
	return func(s *settings) { s.admit = func(context.Context, *pgx.Conn, *server) error { return nil } }
}

// AsBefore14 makes the Locker treat the server as one without idle_session_timeout.
func AsBefore14() Option {
	return func(s *settings) {
		s.admit = func(_ context.Context, _ *pgx.Conn, is *server) error {
			is.version = hasSessionTimeout - 1
			return nil
		}
	}
}

// WithHeartbeat makes the Locker send heartbeats at most once in d.
func WithHeartbeat(d time.Duration) Option {
	return func(s *settings) { s.idle = d }
}

// The statements of a wait, and the one that gives back what it took.
var (
	Seat      = seatSQL
	WaitBegin = waitBeginSQL
	WaitEnd   = waitEndSQL
	Many      = manySQL
)

// KindTry is the difference between the kind that takes a key and the one that gives it back. The others are added for a
// share and for a pair.
const (
	KindTry    = kindTry
	KindShared = kindShared
	KindPair   = kindPair
)

// WaitText returns the statement of a wait for a lock of a kind, on a session that has its gate or not.
func WaitText(kind int64, gated bool) string { return waits[waitKind{kind, gated}] }

// SliceOf is the length of a slice of a wait, in all and if it gets the gate.
var SliceOf = sliceOf
