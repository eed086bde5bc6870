package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/hold"
)

// share is one share on the server, which goroutines of this process have together: a session
// that has a share gets any more of them at once, past everybody who waits for the whole lock.
type share[K comparable] struct {
	want     Want[K]
	tried    chan struct{} // closed when the first try is over
	settled  chan struct{} // closed when there is lock or err
	inTheWay error         // written before tried is closed: who holds the lock
	lock     *hold.Hold    // written before settled is closed, as is err
	err      error
	giveUp   context.CancelFunc // ends the acquisition

	members int       // guarded by Locker.mu: goroutines that have or want it
	patient int       // guarded by Locker.mu: those who came to wait
	asked   time.Time // guarded by Locker.mu: when it was last made sure that no process waits for the whole lock
}

// share takes a share of w together with those who have or want one, and waits for it if it is
// told to.
func (l *Locker[K]) share(ctx context.Context, w Want[K], wait bool) (h *hold.Hold, waited bool, err error) {
	if err := l.over(ctx); err != nil {
		return nil, false, err
	}
	s, err := l.join(ctx, w, wait)
	if err != nil {
		return nil, false, err
	}
	tried := s.tried
	for {
		select {
		case <-s.settled:
			if s.err != nil {
				_ = l.leave(ctx, s)
				return nil, waited, s.err
			}
			if s.lock.Context().Err() != nil { // it ended meanwhile
				_ = l.leave(ctx, s)
				return l.share(ctx, w, wait)
			}
			return hold.Under(ctx, s.lock.Context(), w.Name, func(ctx context.Context) error { return l.leave(ctx, s) }), waited, nil
		case <-tried:
			tried, waited = nil, s.inTheWay != nil
			if waited && !wait {
				_ = l.leave(ctx, s)
				return nil, false, s.inTheWay
			}
		case <-ctx.Done():
			err := context.Cause(ctx)
			if waited {
				err = fmt.Errorf("%w: %w", &sqllock.HeldError{Name: w.Name}, err)
			}
			_ = l.leave(ctx, s)
			return nil, waited, err
		}
	}
}

// join makes the caller a member of the share that is there, or of a new one.
func (l *Locker[K]) join(ctx context.Context, w Want[K], wait bool) (*share[K], error) {
	for {
		l.mu.Lock()
		s := l.shares[w.Key]
		if s != nil && s.isSettled() && (s.lock.Context().Err() != nil || l.turns.Waiting(w.Key)) {
			s = nil // somebody here waits for the whole lock
		}
		if s == nil {
			if l.closing.Err() != nil {
				l.mu.Unlock()
				return nil, sqllock.ErrClosed
			}
			s = l.newShare(ctx, w)
		}
		s.members++
		if wait {
			s.patient++
		}
		ask := s.isSettled() && time.Since(s.asked) > passTime
		if ask {
			s.asked = time.Now()
		}
		l.mu.Unlock()
		if !ask || !l.isWaitedFor(ctx, w) {
			return s, nil
		}
		l.mu.Lock()
		l.shut(s)
		l.mu.Unlock()
		_ = l.leave(ctx, s)
	}
}

// newShare begins to acquire a share, under no caller's context. The caller holds mu.
func (l *Locker[K]) newShare(ctx context.Context, w Want[K]) *share[K] {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // leave calls it
	s := &share[K]{want: w, tried: make(chan struct{}), settled: make(chan struct{}), giveUp: cancel}
	l.shares[w.Key] = s
	l.running.Go(func() { l.settle(ctx, s) })
	return s
}

// settle acquires the share. It does not wait when none of its members does.
func (l *Locker[K]) settle(ctx context.Context, s *share[K]) {
	lock, err := l.tryTurn(ctx, s.want)
	if errors.Is(err, sqllock.ErrHeld) {
		s.inTheWay = err
	}
	close(s.tried)
	l.mu.Lock()
	wait := s.inTheWay != nil && s.patient > 0
	if err != nil && !wait {
		l.shut(s)
	}
	l.mu.Unlock()
	if wait {
		lock, _, err = l.waitTurn(ctx, s.want)
	}

	l.mu.Lock()
	s.lock, s.err, s.asked = lock, err, time.Now()
	if err != nil {
		l.shut(s)
	}
	close(s.settled)
	abandoned := s.members == 0
	l.mu.Unlock()
	if abandoned && lock != nil {
		_ = lock.Release(ctx) // an error ended the session, and with it the lock
	}
}

// leave is called once for each member: the last one gives the share back.
func (l *Locker[K]) leave(ctx context.Context, s *share[K]) error {
	l.mu.Lock()
	s.members--
	last, settled := s.members == 0, s.isSettled()
	if last {
		l.shut(s)
	}
	var over error
	if settled && s.lock != nil { // the last member to leave has not released it yet
		over = context.Cause(s.lock.Context()) //nolint:contextcheck // the lock has a context of its own
	}
	l.mu.Unlock()
	switch {
	case !last:
		return over
	case !settled:
		s.giveUp()
		return nil
	case s.lock == nil:
		return nil
	default:
		s.giveUp()
		err := s.lock.Release(ctx)
		if op := (*sqllock.OpError)(nil); errors.As(err, &op) {
			return op.Err
		}
		return err
	}
}

// shut lets nobody join any more. The caller holds mu.
func (l *Locker[K]) shut(s *share[K]) {
	if l.shares[s.want.Key] == s {
		delete(l.shares, s.want.Key)
	}
}

// isWaitedFor reports whether another process stands in the server's queue for the lock.
func (l *Locker[K]) isWaitedFor(ctx context.Context, w Want[K]) bool {
	holder, err := l.holder(ctx, w)
	return err == nil && holder.Waiters > 0 // an error will come to the share as well
}

func (s *share[K]) isSettled() bool {
	select {
	case <-s.settled:
		return true
	default:
		return false
	}
}
