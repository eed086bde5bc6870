package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/hold"
)

// A waiter for a share looks every lookTime whether it may join the held one. It asks the server for waiters in other
// processes after a quarter of its wait, and at the latest after maxAskPause.
const (
	lookTime    = 50 * time.Millisecond
	maxAskPause = time.Second
)

// share is one share on the server, which goroutines of this process hold together: a session that holds a share gets
// more of them at once, past every waiter for the exclusive lock.
type share[K comparable] struct {
	l        *Locker[K]
	want     Want[K]
	tried    chan struct{} // closed when the first try is over
	inTheWay error         // written before tried is closed: that the lock is held, or an error that may pass
	settled  chan struct{} // closed when lock or err is set
	lock     *lock[K]      // written before settled is closed, as is err
	err      error
	giveUp   context.CancelFunc // ends the acquisition
	gone     chan struct{}      // closed when the share was given back after its last member had left

	members int           // guarded by Locker.mu: the number of goroutines that have or want it
	patient bool          // guarded by Locker.mu: a member came to wait
	asked   time.Time     // guarded by Locker.mu: when the server last answered whether there are waiters for the exclusive lock
	waited  bool          // guarded by Locker.mu: the answer: there are some
	asking  chan struct{} // guarded by Locker.mu: closed when the server has answered; nil: nobody asks
}

// share takes a share of w together with the goroutines that have or want one. It waits for the share if there is a
// request to tell of the wait.
func (l *Locker[K]) share(ctx context.Context, w Want[K], asked *request[K]) (*hold.Hold, error) {
	held, began := false, time.Now() // whether somebody was seen to hold the lock, and since when the caller waits
	for {
		err := l.ended(ctx)
		var s *share[K]
		if err == nil {
			s, err = l.join(ctx, w, asked != nil)
		}
		if err != nil && held && ctx.Err() != nil && l.closing.Err() == nil {
			err = l.waitError(ctx, w.Name, l.outage.Last() == nil, err)
		}
		if err != nil {
			return nil, err
		}
		if h, err := s.await(ctx, asked, began, &held); !errors.Is(err, errAnother) {
			return h, err
		}
	}
}

// errAnother says that the member of a share is to leave it and to join another one.
var errAnother = errors.New("there may be another share to join")

// await waits until the share is acquired, and holds it for a member. It does not wait if there is no request to tell of
// the wait. After an error the member has left. held becomes whether the first try, if it was answered, found that somebody
// holds the lock.
func (s *share[K]) await(
	ctx context.Context, asked *request[K], began time.Time, held *bool,
) (h *hold.Hold, err error) {
	defer func() {
		if h == nil { // also when user code panics
			_ = s.leave(ctx) // a share that it does not have cannot be lost
		}
	}()
	tried := s.tried
	var again <-chan time.Time // ticks while the caller waits
	for {
		select {
		case <-s.settled:
			switch {
			case s.err != nil:
				return nil, s.err
			case s.isOver():
				return nil, errAnother
			}
			return hold.Under(ctx, s.lock.Context(), s.want.Name, member[K]{s}), nil
		case <-tried:
			tried = nil
			if s.isSettled() || s.inTheWay == nil { // what was in the way of the first try no longer is
				continue
			}
			if asked == nil {
				return nil, s.inTheWay
			}
			*held = errors.Is(s.inTheWay, sqllock.ErrHeld)
			asked.waits(ctx)
			tick := time.NewTicker(lookTime)
			defer tick.Stop() // tried is closed once
			again = tick.C
		case <-again: // the waiter for the exclusive lock may have left
			if s.mayJoinAnother(ctx, min(time.Since(began)/4, maxAskPause)) {
				return nil, errAnother
			}
		case <-ctx.Done():
			return nil, s.l.waitError(ctx, s.want.Name, *held && s.l.outage.Last() == nil, context.Cause(ctx))
		}
	}
}

// join makes the caller a member of the current share, of the queued one if somebody waits for the exclusive lock, or
// of a new one (I40, I48).
func (l *Locker[K]) join(ctx context.Context, w Want[K], wait bool) (*share[K], error) {
	for {
		l.mu.Lock()
		current, queued := l.shares[w.Key], l.queued[w.Key]
		s := current
		switch {
		case current == nil:
			s = queued
		case !current.isSettled():
		case current.members == 0: // it is being given back
			l.mu.Unlock()
			select {
			case <-current.gone:
				continue
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		case current.isOver():
			s = queued
		case current.mustAsk():
			l.mu.Unlock()
			if err := current.ask(ctx); err != nil && ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			continue
		case current.isWanted() && !wait:
			l.mu.Unlock()
			return nil, l.heldHere(w)
		case current.isWanted():
			s = queued
		}
		if s == nil {
			if l.closing.Err() != nil {
				l.mu.Unlock()
				return nil, sqllock.ErrClosed
			}
			s = l.newShare(w) //nolint:contextcheck // under no caller's context
		}
		s.members++
		if wait {
			s.patient = true
		}
		l.mu.Unlock()
		return s, nil
	}
}

// newShare begins to acquire a share, under no caller's context. It queues the share if there is another one. The
// caller holds mu.
func (l *Locker[K]) newShare(w Want[K]) *share[K] {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:gosec // giveUp is called in the end
	s := &share[K]{
		l: l, want: w, giveUp: cancel,
		tried: make(chan struct{}), settled: make(chan struct{}), gone: make(chan struct{}),
	}
	if current := l.shares[w.Key]; current != nil && !current.isOver() {
		l.queued[w.Key] = s
	} else {
		l.shares[w.Key] = s
	}
	l.running.Go(func() { s.settle(ctx) })
	return s
}

// settle acquires the share. It does not wait when none of its members does.
func (s *share[K]) settle(ctx context.Context) {
	tried, settled := false, false
	defer func() {
		if settled {
			return
		}
		s.l.mu.Lock() // a hook, or a driver, has ended the goroutine
		defer s.l.mu.Unlock()
		if !tried {
			close(s.tried)
		}
		s.err = errPanicked
		s.shut()
		close(s.settled)
	}()
	lock, err := s.l.acquireFree(ctx, s.want)
	if err != nil && passing(err) {
		s.inTheWay = err
	}
	tried = true
	close(s.tried)
	s.l.mu.Lock()
	wait := s.inTheWay != nil && s.patient
	if err != nil && !wait {
		s.shut()
	}
	s.l.mu.Unlock()
	if wait {
		lock, err = s.l.acquireQueued(ctx, s.want, nil) // its members tell of their waits
	}

	s.l.mu.Lock()
	s.lock, s.err, s.asked = lock, err, time.Now()
	if err != nil {
		s.shut()
	} else if s.l.queued[s.want.Key] == s {
		delete(s.l.queued, s.want.Key)
		s.l.shares[s.want.Key] = s
	}
	settled = true
	close(s.settled)
	abandoned := s.members == 0 && lock != nil
	if abandoned && s.l.shares[s.want.Key] == nil {
		s.l.shares[s.want.Key] = s // a caller that joins waits until it is given back
	}
	s.l.mu.Unlock()
	if abandoned {
		_ = s.giveBack(ctx) // an error ended the session, and with it the lock
	}
}

// member is a goroutine that has a share.
type member[K comparable] struct{ s *share[K] }

func (m member[K]) Free(ctx context.Context) error { return m.s.leave(ctx) }

// leave is called once for each member (I48). The last one gives the share back.
func (s *share[K]) leave(ctx context.Context) error {
	s.l.mu.Lock()
	s.members--
	last, settled := s.members == 0, s.isSettled()
	if last && (!settled || s.lock == nil) {
		s.shut()
	}
	var over error
	if settled && s.lock != nil { // the last member to leave has not released it yet
		over = context.Cause(s.lock.Context()) //nolint:contextcheck // the lock has a context of its own
		if over == nil && !s.lock.s.isTrusted() {
			over = fmt.Errorf("%w: %w", sqllock.ErrLost, s.lock.s.silence())
		}
	}
	s.l.mu.Unlock()
	switch {
	case !last:
		return over
	case !settled:
		s.giveUp()
		return nil
	case s.lock == nil:
		return nil
	}
	return s.giveBack(ctx)
}

// giveBack releases a share that has no members left.
func (s *share[K]) giveBack(ctx context.Context) error {
	defer func() { // also when user code panics
		s.giveUp()
		s.l.mu.Lock()
		defer s.l.mu.Unlock()
		s.shut()
		close(s.gone)
	}()
	err := s.lock.Release(ctx)
	if op := (*sqllock.OpError)(nil); errors.As(err, &op) {
		return op.Err
	}
	return err
}

// shut keeps callers from joining. The caller holds mu.
func (s *share[K]) shut() {
	for _, shares := range []map[K]*share[K]{s.l.shares, s.l.queued} {
		if shares[s.want.Key] == s {
			delete(shares, s.want.Key)
		}
	}
}

func (s *share[K]) isSettled() bool { return isClosed(s.settled) }

// isOver reports whether a share is settled and cannot be used any more.
func (s *share[K]) isOver() bool {
	return s.isSettled() && (s.lock == nil || s.lock.Context().Err() != nil || !s.lock.s.isTrusted())
}
