package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
)

// pollEvery is about how often a lock is tried for when there is no session left to wait on.
const pollEvery = 50 * time.Millisecond

// try tries for w on a shared session. It returns neither lock nor error when somebody else
// holds it.
func (l *Locker[K]) try(ctx context.Context, w Want[K]) (got *lock[K], err error) {
	err = l.onShared(ctx, func(s *session[K]) error {
		lock := l.newLock(ctx, w, s, time.Now())
		c := &call[K]{op: w.take(), lock: lock}
		if err := s.do(ctx, c); err != nil {
			return err
		}
		if c.op.Done {
			got = lock
		}
		return c.refused
	})
	return got, err
}

// wait waits for a key that somebody was seen to hold. The lock then lives on the session that
// it was waited for on.
func (l *Locker[K]) wait(ctx context.Context, w Want[K]) (got *lock[K], err error) {
	began := time.Now()
	for {
		s, reused, err := l.sessionApart(ctx)
		if err != nil {
			return nil, leftHeld(ctx, w.Name, err)
		}
		if s == nil {
			got, err = l.poll(ctx, w)
			if got != nil || err != nil {
				return got, leftHeld(ctx, w.Name, err)
			}
			continue
		}
		proven := reused // a session that worked, and ends now, is replaced
		for got == nil && err == nil {
			if got, err = l.slice(ctx, w, s, time.Since(began)); err == nil {
				proven = true
			}
		}
		var ended *endedError
		proven = proven || errors.Is(err, ErrSilent)
		if got != nil || !proven || !errors.As(err, &ended) || !ended.Retryable() {
			return got, leftHeld(ctx, w.Name, err)
		}
	}
}

// slice waits for w on a session apart, as long as one statement waits. When ctx ends, the
// session gives back what it may still be granted before anybody uses it again.
func (l *Locker[K]) slice(ctx context.Context, w Want[K], s *session[K], waited time.Duration) (*lock[K], error) {
	c := &call[K]{op: w.take(), free: true, idle: func() { l.park(s) }}
	c.undo = s.conn.Forget
	c.lock = l.newLock(ctx, w, s, time.Now())
	c.work = func(ctx context.Context) (err error) {
		c.refused = s.conn.Wait(ctx, &c.op, waited)
		c.lock.since = time.Now()
		if c.refused == nil || s.conn.Broken(c.refused) {
			return c.refused
		}
		// The refusal can have met the grant.
		c.op.Done = false
		return s.conn.Forget(ctx)
	}
	if err := s.do(ctx, c); err != nil {
		return nil, err
	}
	if c.refused != nil {
		l.park(s)
		return nil, c.refused
	}
	if !c.op.Done {
		return nil, nil
	}
	return c.lock, nil
}

// poll lets some time pass and tries for key on a shared session: the Locker has no session
// left to wait on.
func (l *Locker[K]) poll(ctx context.Context, w Want[K]) (*lock[K], error) {
	pause := time.NewTimer(pollEvery/2 + rand.N(pollEvery)) //nolint:gosec // jitter
	defer pause.Stop()
	select {
	case <-pause.C:
		return l.try(ctx, w)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-l.closing.Done():
		return nil, sqllock.ErrClosed
	}
}

// leftHeld is the error of a wait for a lock that somebody was seen to hold: what happened, or,
// when ctx has ended, that. What a driver says then tells only that some context ended.
func leftHeld(ctx context.Context, name string, err error) error {
	if err == nil || !bound.Ended(ctx) {
		return err
	}
	return fmt.Errorf("%w: %w", &sqllock.HeldError{Name: name}, context.Cause(ctx))
}
