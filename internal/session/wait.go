package session

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/trouble"
)

// pollEvery is about how often a lock is tried for when there is no session left to wait on, or no room to try.
const pollEvery = 50 * time.Millisecond

// waiter waits for one lock, at the head of its key's wait queue.
type waiter[K comparable] struct {
	l     *Locker[K]
	want  Want[K]
	asked *request[K] // told that it waits; may be nil
	began time.Time
	held  bool          // the server's last answer: somebody holds the lock
	pause trouble.Pause // after the last error
}

// untilTaken tries for the lock, unless somebody was just seen to hold it, and then waits for it. An error that can pass, such
// as a restart of the server, does not end the wait: it begins again, on other sessions. A key that the server may have
// granted to an old session ends with that session.
func (w *waiter[K]) untilTaken(ctx context.Context) (got *lock[K], err error) {
	l := w.l
	if w.held {
		w.asked.waits(ctx)
	}
	lately := false // the key is waited for without a try
	for {
		if !w.held {
			lately = l.contended.lately(w.want.Key) && l.hasParked()
		}
		if !w.held && !lately {
			got, err = l.try(ctx, w.want)
			if err == nil && got == nil {
				w.seenHeld(ctx)
				l.contended.note(w.want.Key)
			}
		}
		if err == nil && got == nil {
			got, err = w.wait(ctx)
		}
		if err == nil {
			l.outage.Over()
			return got, nil
		}
		if l.ended(ctx) != nil || !passing(err) {
			break
		}
		w.asked.waits(ctx)
		if l.outage.Meet(err) {
			l.Events.Retrying(ctx, w.want.Name, w.began, err)
		}
		w.held, lately = false, false
		if err = l.sleep(ctx, w.pause.Next()); err != nil {
			break
		}
	}
	switch {
	case l.closing.Err() != nil:
		err = sqllock.ErrClosed // Close also ends sessions in ways that look like another error
	case bound.Ended(ctx):
		err = l.waitError(ctx, w.want.Name, w.held || lately && l.outage.Last() == nil, err)
	}
	return nil, err
}

// seenHeld records that the server has answered: somebody holds the lock.
func (w *waiter[K]) seenHeld(ctx context.Context) {
	w.held, w.pause = true, 0
	w.l.outage.Over()
	w.asked.waits(ctx)
}

// passing reports whether err can pass without anything being changed here.
func passing(err error) bool {
	var limit *LimitError
	if errors.As(err, &limit) {
		return limit.OfServer
	}
	return sqllock.IsRetryable(err)
}

// wait waits for a key that somebody holds, as it seems. The lock then stays on the session that waited for it. If user code
// panics, the session ends: nobody else knows it.
func (w *waiter[K]) wait(ctx context.Context) (got *lock[K], err error) {
	var s *session[K]
	returned := false
	defer func() {
		if !returned && s != nil {
			s.stop()
		}
	}()
	for {
		if s == nil {
			s, _, err = w.l.dedicatedSession(ctx)
		}
		switch {
		case err != nil:
		case s != nil:
			got, err = w.slice(ctx, s)
		default: // no session is left to wait on
			if err = w.l.sleep(ctx, jitter.Around(pollEvery)); err == nil {
				got, err = w.l.try(ctx, w.want)
			}
		}
		if got != nil || err != nil {
			returned = true
			return got, err
		}
		w.seenHeld(ctx)
	}
}

// slice waits for the key on a dedicated session, by one call of Wait (I40). When ctx ends, the session
// gives back what it may still be granted before anybody uses it again.
func (w *waiter[K]) slice(ctx context.Context, s *session[K]) (*lock[K], error) {
	waited, left := time.Since(w.began), time.Duration(math.MaxInt64)
	if deadline, ok := ctx.Deadline(); ok && time.Now().Before(deadline) { // ctx can outlive it, see bound.Ended
		left = time.Until(deadline)
	}
	c := &call[K]{op: w.want.take(), free: true, idle: func() { w.l.park(s) }}
	c.lock = newLock(ctx, w.l, w.want, s, time.Now())
	c.work = func(ctx context.Context) (err error) {
		sent := clock.Now()
		c.refused = s.conn.Wait(ctx, &c.op, waited, left)
		if c.refused == nil {
			s.pinged, s.checked = time.Now(), clock.Plain(sent) // Wait looks at the server
			if c.op.Done && s.keeper != nil {
				c.refused = heartbeat[K]{s}.keepSoon(ctx, sent)
			}
		}
		c.lock.since = time.Now()
		if c.refused == nil || s.conn.Broken(c.refused) || errors.Is(c.refused, sqllock.ErrRefused) {
			return c.refused
		}
		// The server may have granted the key just before the error (I43).
		c.op.Done = false
		return s.conn.Forget(ctx)
	}
	if err := s.do(ctx, c); err != nil {
		return nil, err
	}
	if c.refused != nil {
		w.l.park(s)
	}
	if c.refused != nil || !c.op.Done {
		return nil, c.refused
	}
	return c.lock, nil
}
