package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/trouble"
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

// untilTaken tries for w, and then waits for it. Its caller has the turn of the key. What can be over soon, such as a restart of the
// server, does not end it: then it begins again, on other sessions. What the old ones may have been granted ends with
// them. It reports whether it had to wait.
func (l *Locker[K]) untilTaken(ctx context.Context, w Want[K], contended bool) (got *lock[K], waited bool, err error) {
	v := &waitState{began: time.Now(), held: contended}
	for {
		if !contended {
			got, err = l.try(ctx, w)
		}
		if err == nil && got == nil {
			waited = true
			l.seenHeld(v)
			got, err = l.wait(ctx, w, v)
		}
		if err == nil {
			l.outage.Over()
			return got, waited, nil
		}
		if l.ended(ctx) != nil || !passing(err) {
			break
		}
		if l.outage.Meet(err) {
			l.Events.Retrying(ctx, w.Name, v.began, err)
		}
		waited, contended, v.held = true, false, false
		if err = l.sleep(ctx, v.pause.Next()); err != nil {
			break
		}
	}
	if bound.Ended(ctx) && l.closing.Err() == nil {
		err = l.waitError(ctx, w.Name, v.held, err)
	}
	return nil, waited, err
}

// vigil is a wait for a lock.
type waitState struct {
	began time.Time
	held  bool          // the last that was heard is that somebody holds the lock
	pause trouble.Pause // after what was met last
}

// seenHeld notes that the server has answered: somebody holds the lock.
func (l *Locker[K]) seenHeld(v *waitState) {
	v.held, v.pause = true, 0
	l.outage.Over()
}

// passing reports whether err is about what can be over soon, without anything being changed here.
func passing(err error) bool {
	var limit *LimitError
	if errors.As(err, &limit) {
		return limit.OfServer
	}
	return sqllock.IsRetryable(err)
}

// wait waits for a key that somebody was seen to hold. The lock then lives on the session that
// it was waited for on.
func (l *Locker[K]) wait(ctx context.Context, w Want[K], v *waitState) (*lock[K], error) {
	for {
		var got *lock[K]
		s, _, err := l.dedicatedSession(ctx)
		switch {
		case err != nil:
			return nil, err
		case s == nil:
			got, err = l.poll(ctx, w)
		default:
			got, err = l.slices(ctx, w, s, v)
		}
		if got != nil || err != nil {
			return got, err
		}
		l.seenHeld(v)
	}
}

// slices waits for w on a session apart until it is taken.
func (l *Locker[K]) slices(ctx context.Context, w Want[K], s *session[K], v *waitState) (got *lock[K], err error) {
	for {
		if got, err = l.slice(ctx, w, s, time.Since(v.began)); got != nil || err != nil {
			return got, err
		}
		l.seenHeld(v)
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
	if err := l.sleep(ctx, pollEvery/2+rand.N(pollEvery)); err != nil { //nolint:gosec // jitter
		return nil, err
	}
	return l.try(ctx, w)
}

// sleep returns nil after d, or why nothing more is to be done for a caller if that comes first.
func (l *Locker[K]) sleep(ctx context.Context, d time.Duration) error {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.closing.Done():
		return sqllock.ErrClosed
	}
}

// left is the error of a wait whose ctx has ended: of a lock that somebody was seen to hold that it is held, and otherwise
// what was the trouble. What a driver says then tells only that some context ended.
func (l *Locker[K]) waitError(ctx context.Context, name string, held bool, err error) error {
	switch {
	case held:
		return fmt.Errorf("%w: %w", &sqllock.HeldError{Name: name}, context.Cause(ctx))
	case l.outage.Last() != nil:
		return l.outage.With(context.Cause(ctx))
	}
	return err
}
