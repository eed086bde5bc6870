package session

import (
	"context"
	"errors"
	"os"

	"github.com/sqllock/sqllock"
)

// Ask uses a connection of l for a question; see Use.
func Ask[K comparable, T any](
	ctx context.Context, l *Locker[K], op, name string, f func(context.Context, Conn[K]) (T, error),
) (answer T, err error) {
	answers := make(chan T, 2) // f may run twice, and after ctx has ended
	err = l.Use(ctx, op, name, func(ctx context.Context, c Conn[K]) error {
		answer, err := f(ctx, c)
		answers <- answer
		return err
	})
	if err != nil {
		return answer, err
	}
	for range len(answers) { // the last is the one that was heard
		answer = <-answers
	}
	return answer, nil
}

// Use runs f with a connection of the Locker, for what is asked of the server about locks. An
// error of f that did not break the connection costs no lock. f may go on after ctx has ended.
func (l *Locker[K]) Use(ctx context.Context, op, name string, f func(context.Context, Conn[K]) error) error {
	err := l.over(ctx)
	if err == nil {
		err = l.onShared(ctx, func(s *session[K]) error {
			c := &call[K]{}
			c.work = func(ctx context.Context) error {
				if c.refused = f(ctx, s.conn); c.refused != nil && s.conn.Broken(c.refused) {
					return c.refused
				}
				return nil
			}
			if err := s.do(ctx, c); err != nil {
				return err
			}
			return c.refused
		})
	}
	if err != nil {
		return &sqllock.OpError{Op: op, Name: name, Err: err}
	}
	return nil
}

// describe is the error for a lock that somebody else was seen to hold. Who, is worth asking
// for, but nothing to fail for.
func (l *Locker[K]) describe(ctx context.Context, w Want[K]) error {
	holder, err := l.holder(ctx, w)
	if errors.Is(err, sqllock.ErrClosed) {
		return sqllock.ErrClosed
	}
	return &sqllock.HeldError{Name: w.Name, Holder: holder}
}

// holder asks who holds a lock.
func (l *Locker[K]) holder(ctx context.Context, w Want[K]) (sqllock.Holder, error) {
	return Ask(ctx, l, "inspect", w.Name, func(ctx context.Context, c Conn[K]) (holder sqllock.Holder, err error) {
		holder, _, err = c.Holder(ctx, w.Key)
		return holder, err
	})
}

// heldHere is the error for a lock whose turn is taken in this process: one of its goroutines
// holds the lock, or is waiting for it.
func (l *Locker[K]) heldHere(w Want[K]) *sqllock.HeldError {
	held := &sqllock.HeldError{Name: w.Name}
	if l.Holds(w.Key) {
		held.Holder = sqllock.Holder{Owner: l.Owner, PID: os.Getpid()}
	}
	return held
}

// Holds reports whether a session of this Locker holds key.
func (l *Locker[K]) Holds(key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.sessions {
		if s.holds(key) {
			return true
		}
	}
	return false
}
