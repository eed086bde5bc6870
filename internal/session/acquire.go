package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/hold"
)

// try tries for key on the shared session. It returns neither lock nor error when somebody
// else holds it; describe, if not nil, is then told who.
func (l *Locker[K]) try(
	ctx context.Context, name string, key K, over func(), describe *sqllock.HeldError,
) (lock sqllock.Lock, err error) {
	err = l.onShared(ctx, func(s *session[K]) error {
		g := l.grant(ctx, s, name, key, over)
		work := func(ctx context.Context) error {
			if err := g.take(ctx, s.conn.Try); err != nil || g.taken || describe == nil {
				return err
			}
			var err error
			describe.Holder, _, err = s.conn.Holder(ctx, key)
			return s.onlyBroken(err)
		}
		if err := s.do(ctx, &call{work: work, keep: g.keep, undo: g.undo}); err != nil {
			return err
		}
		if g.taken {
			lock = g.lock
		}
		return g.err
	})
	return lock, err
}

// wait waits for key on a session apart, which then holds only this lock and is closed with
// it. When ctx ends, the session gives back what it may still be granted and is closed.
func (l *Locker[K]) wait(ctx context.Context, name string, key K, over func()) (sqllock.Lock, error) {
	s, err := l.newSession(ctx)
	if err != nil {
		return nil, leftHeld(ctx, name, err)
	}
	g := l.grant(ctx, s, name, key, over)
	for !g.taken {
		slice := func(ctx context.Context) error { return g.take(ctx, s.conn.Wait) }
		err := s.do(ctx, &call{work: slice, keep: g.keep, undo: g.undo, free: true})
		if err == nil {
			err = g.err
		}
		if err != nil {
			s.stop()
			return nil, leftHeld(ctx, name, err)
		}
	}
	return g.lock, nil
}

// leftHeld is the error of a wait for a lock that somebody was seen to hold: what happened, or,
// when ctx has ended, that. What a driver says then tells only that some context ended.
func leftHeld(ctx context.Context, name string, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", &sqllock.HeldError{Name: name}, context.Cause(ctx))
}

// grant is one attempt to take a key on a session. Its fields are the session's goroutine's
// until the call is answered.
type grant[K comparable] struct {
	s     *session[K]
	key   K
	lock  *hold.Hold
	over  func()
	taken bool
	err   error // what the server said instead of an answer, the key being not held
}

func (l *Locker[K]) grant(ctx context.Context, s *session[K], name string, key K, over func()) *grant[K] {
	g := &grant[K]{s: s, key: key, over: over}
	g.lock = hold.New(ctx, name, func(ctx context.Context) error { return l.release(ctx, s, key, over) })
	return g
}

// take makes the attempt. An error from the server does not mean that the lock is not held (a
// cancel or a timeout can meet the grant), so that key is unlocked before the session is
// used again. No other lock of the session can be meant: of one key a session holds one.
func (g *grant[K]) take(ctx context.Context, attempt func(context.Context, K) (bool, error)) error {
	g.taken, g.err = attempt(ctx, g.key)
	if g.err != nil {
		if g.s.conn.Broken(g.err) {
			return g.err
		}
		_, err := g.s.conn.Unlock(ctx, g.key)
		return err
	}
	return nil
}

// keep records the lock on its session.
func (g *grant[K]) keep() {
	if g.taken {
		g.s.add(g.key, heldLock{g.lock, g.over})
	}
}

// undo gives the lock back when its caller has left.
func (g *grant[K]) undo(ctx context.Context) error {
	if !g.taken {
		return nil
	}
	_, err := g.s.conn.Unlock(ctx, g.key)
	return err
}

// release gives key back on the session that holds it. It is not abandoned halfway: it ends
// when the server has answered, or when the session has ended and with it the lock.
func (l *Locker[K]) release(ctx context.Context, s *session[K], key K, over func()) error {
	owned := false
	err := s.do(ctx, &call{work: func(ctx context.Context) (err error) {
		if owned, err = s.conn.Unlock(ctx, key); err != nil {
			return err
		}
		s.remove(key)
		return nil
	}})
	over()
	if !l.isShared(s) {
		s.stop()
	}
	switch {
	case errors.Is(err, sqllock.ErrClosed):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", sqllock.ErrLost, err)
	case !owned:
		return fmt.Errorf("%w: the server says that this session did not hold it", sqllock.ErrLost)
	}
	return nil
}

// onlyBroken passes an error on only if it left the connection unusable: what was asked was
// not worth the locks on the session.
func (s *session[K]) onlyBroken(err error) error {
	if err != nil && s.conn.Broken(err) {
		return err
	}
	return nil
}
