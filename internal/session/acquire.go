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

// try tries for w on a shared session, and on another one if that ends. It returns neither lock nor error when somebody
// else holds w.
func (l *Locker[K]) try(ctx context.Context, w Want[K]) (*lock[K], error) {
	var r retry
	for {
		s, err := l.sharedSession(ctx)
		if err != nil {
			return nil, err
		}
		c := &call[K]{op: w.take(), lock: l.newLock(ctx, w, s, time.Now())}
		err = s.do(ctx, c)
		switch {
		case err == nil && c.op.Done:
			return c.lock, nil
		case err == nil:
			return nil, c.refused
		}
		if err := r.after(ctx, err); err != nil {
			return nil, err
		}
	}
}

// untilTaken tries for w, and then waits for it. Its caller is at the head of the key's wait queue. An error that can
// pass, such as a restart of the server, does not end the wait: it begins again, on other sessions. A key that the
// server may have granted to an old session ends with that session. untilTaken reports whether it had to wait.
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

// waitState is the state of one wait for a lock.
type waitState struct {
	began time.Time
	held  bool          // the server's last answer: somebody holds the lock
	pause trouble.Pause // after the last error
}

// seenHeld records that the server has answered: somebody holds the lock.
func (l *Locker[K]) seenHeld(v *waitState) {
	v.held, v.pause = true, 0
	l.outage.Over()
}

// passing reports whether err can pass without anything being changed here.
func passing(err error) bool {
	var limit *LimitError
	if errors.As(err, &limit) {
		return limit.OfServer
	}
	return sqllock.IsRetryable(err)
}

// wait waits for a key that somebody was seen to hold. The lock then stays on the session that waited for it.
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

// slices waits for w on a dedicated session until it is acquired.
func (l *Locker[K]) slices(ctx context.Context, w Want[K], s *session[K], v *waitState) (got *lock[K], err error) {
	for {
		if got, err = l.slice(ctx, w, s, time.Since(v.began)); got != nil || err != nil {
			return got, err
		}
		l.seenHeld(v)
	}
}

// slice waits for w on a dedicated session, for the length of one statement. When ctx ends, the session gives back what
// it may still be granted before anybody uses it again.
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
		// The server may have granted the key just before the error.
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

// poll pauses and tries for the key on a shared session: the Locker has no session left to wait on.
func (l *Locker[K]) poll(ctx context.Context, w Want[K]) (*lock[K], error) {
	if err := l.sleep(ctx, pollEvery/2+rand.N(pollEvery)); err != nil { //nolint:gosec // jitter
		return nil, err
	}
	return l.try(ctx, w)
}

// sleep returns nil after d, or the reason if the caller's work must end before that.
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

// waitError returns the error of a wait whose ctx has ended: that the lock is held, if somebody was seen to hold it,
// and otherwise the outage. The driver's error would say only that some context ended.
func (l *Locker[K]) waitError(ctx context.Context, name string, held bool, err error) error {
	switch {
	case held:
		return fmt.Errorf("%w: %w", &sqllock.HeldError{Name: name}, context.Cause(ctx))
	case l.outage.Last() != nil:
		return l.outage.With(context.Cause(ctx))
	}
	return err
}
