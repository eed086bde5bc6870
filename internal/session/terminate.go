package session

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/backoff"
)

// A lock whose holder was ended is read again after firstLook, and then less and less often.
const (
	firstLook = 5 * time.Millisecond
	lastLook  = time.Second
)

var errOwn = errors.New("this Locker holds the lock itself; Release it, or Close the Locker")

// Ender is how a database ends the holder of one lock.
type Ender[K comparable] struct {
	Look func(ctx context.Context, op string) (sqllock.Holder, bool, error) // returns the holder of the lock, if there is one
	Is   func(c Conn[K], id int64) bool                                     // reports whether a connection is the session id
	// End ends the session id if it holds the lock, and reports whether it did.
	End func(ctx context.Context, c Conn[K], id int64) (bool, error)
}

// Terminate ends the session that holds a lock, and waits until it no longer does (I50). It returns the holder and
// whether a session was ended.
func (l *Locker[K]) Terminate(ctx context.Context, name string, e Ender[K]) (holder sqllock.Holder, ended bool, err error) {
	holder, ended, err = e.terminate(ctx, l, name)
	l.Events.Forced(ctx, "termination of a lock's session", name, holder, ended, err)
	return holder, ended, err
}

// terminate is Terminate without the log.
func (e Ender[K]) terminate(ctx context.Context, l *Locker[K], name string) (holder sqllock.Holder, ended bool, err error) {
	const op = "terminate"
	holder, held, err := e.Look(ctx, op)
	if err != nil || !held {
		return sqllock.Holder{}, false, err
	}
	id := holder.Session
	if l.has(func(s *session[K]) bool { return e.Is(s.conn, id) }) {
		return sqllock.Holder{}, false, &sqllock.OpError{Op: op, Name: name, Err: errOwn}
	}
	var obeyed atomic.Bool // stays true if a statement was cut off and sent twice, and found nobody then
	_, err = Ask(ctx, l, op, name, func(ctx context.Context, c Conn[K]) (bool, error) {
		done, err := e.End(ctx, c, id)
		if done {
			obeyed.Store(true)
		}
		return done, err
	})
	if !obeyed.Load() {
		return sqllock.Holder{}, false, err
	}
	if err == nil {
		err = e.gone(ctx, op, name, id)
	}
	return holder, true, err
}

// gone waits until the session id no longer holds the lock: the server may take its time to end it.
func (e Ender[K]) gone(ctx context.Context, op, name string, id int64) error {
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		now, held, err := e.Look(ctx, op)
		if err != nil || !held || now.Session != id {
			return err
		}
		if err := backoff.Sleep(ctx, pause); err != nil {
			return &sqllock.OpError{Op: op, Name: name, Err: err}
		}
	}
}
