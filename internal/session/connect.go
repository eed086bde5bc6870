package session

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/clock"
)

// lateTime is how long the opening of a connection may go on after the end of its context. To close what it has opened may
// take two seconds.
const lateTime = 3 * time.Second

// errNoReturn is the error of an opening that went on for too long, or whose goroutine ended.
var errNoReturn = errors.New("the opening of the connection did not return")

// connected is a connection that is fit for locks, or the error of its opening. The trust in it begins at sent.
type connected[K comparable] struct {
	conn Conn[K]
	sent time.Time
	err  error
}

// connect opens a connection. It returns soon after the end of ctx, whatever the user's code does that it calls, such as
// a dial function: that may ignore ctx or end its goroutine. A connection that comes too late is closed.
func connect[K comparable](ctx context.Context, open func(context.Context) (Conn[K], error)) connected[K] {
	answer, late := make(chan connected[K]), make(chan struct{})
	go func() {
		got := connected[K]{err: &UnavailableError{Err: errNoReturn}}
		defer func() { // also after runtime.Goexit
			select {
			case answer <- got:
			case <-late:
				if got.conn != nil {
					got.conn.Close()
				}
			}
		}()
		got = openAndPing(ctx, open)
	}()
	select {
	case got := <-answer:
		return got
	case <-ctx.Done():
	}
	select {
	case got := <-answer:
		return got
	case <-time.After(lateTime):
		close(late)
		return connected[K]{err: &UnavailableError{Err: errNoReturn}}
	}
}

// openAndPing opens a connection and makes sure that it is fit for locks.
func openAndPing[K comparable](ctx context.Context, open func(context.Context) (Conn[K], error)) connected[K] {
	conn, err := open(ctx)
	if err != nil {
		return connected[K]{err: err}
	}
	sent := clock.Now() // the trust in the session begins here
	if err := conn.Ping(ctx); err != nil {
		if conn.Broken(err) && !errors.Is(err, sqllock.ErrRefused) {
			err = &UnavailableError{Err: err}
		}
		conn.Close()
		return connected[K]{err: err}
	}
	return connected[K]{conn: conn, sent: sent}
}
