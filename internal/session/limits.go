package session

import (
	"fmt"

	"github.com/sqllock/sqllock"
)

// Limits bounds what a Locker uses of its server.
type Limits struct {
	Sessions int // connections; at most half of them are dedicated to waits
	Locks    int // locks on one session
}

// NewLimits validates the number of sessions.
func NewLimits(sessions, locks int) (Limits, error) {
	const least, most = 2, 1000
	if sessions < least || sessions > most {
		return Limits{}, fmt.Errorf("sqllock: WithMaxConnections(%d) is out of range; it must be from %d to %d", sessions, least, most)
	}
	return Limits{Sessions: sessions, Locks: locks}, nil
}

func (n Limits) dedicated() int { return n.Sessions / 2 }
func (n Limits) shared() int    { return n.Sessions - n.dedicated() }

// full returns the error when every session has as many locks as it may.
func (n Limits) full() error {
	return &LimitError{Err: fmt.Errorf("this Locker holds as many locks as its %d connections may: %d each", n.shared(), n.Locks)}
}

// LimitError says that the Locker or its server has no lock or connection left; it matches sqllock.ErrLimit.
type LimitError struct {
	Err      error
	OfServer bool // the server has room for no more sessions, until somebody closes one
}

func (e *LimitError) Error() string { return "limit reached: " + e.Err.Error() }

// Unwrap returns Err.
func (e *LimitError) Unwrap() error { return e.Err }

// Is reports whether target is ErrLimit.
func (e *LimitError) Is(target error) bool { return target == sqllock.ErrLimit }

// Retryable answers sqllock.IsRetryable.
func (e *LimitError) Retryable() bool { return true }
