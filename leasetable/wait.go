package leasetable

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/trouble"
	"github.com/sqllock/sqllock/internal/waiting"
	"github.com/sqllock/sqllock/leasetable/internal/backoff"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// waitAtMost is wait, for as long as the options allow.
func (a *attempt) waitAtMost() (*Lease, error) {
	return waiting.AtMost(a.ctx, a.choice.wait,
		func(context.Context) (*Lease, error) { return a.try() }, //nolint:contextcheck // a has the context
		func(ctx context.Context) (*Lease, error) {
			a.ctx = ctx
			return a.wait() //nolint:contextcheck // a has the context
		})
}

// wait acquires the name as soon as it is free or its lease is over. It waits in the wait queue of this process first.
func (a *attempt) wait() (*Lease, error) {
	a.waited = !a.queue.Try(a.name)
	if !a.waited {
		return a.inTurn(a.afterYielding)
	}
	if a.early || a.permit() {
		if state, err := a.read(); err == nil && a.blocked(state) && (a.early && a.outlasts(state) || a.mismatch(state) != nil) {
			return nil, a.held(state)
		}
	}
	h, err := a.queue.WaitWith(a.ctx, a.name, string(a.metadata))
	switch {
	case err != nil && a.outage.Last() != nil && !a.holds(a.name): // the goroutine ahead in the wait queue waits for the database
		return nil, a.outage.With(err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", &sqllock.HeldError{Name: a.name}, err)
	}
	return a.inTurn(func() (*Lease, error) {
		if h.lease != nil {
			return a.receiveHandoff(h)
		}
		if h.retryNow {
			return a.poll()
		}
		return a.afterYielding()
	})
}

// afterYielding polls after other processes have had their chance.
func (a *attempt) afterYielding() (lease *Lease, err error) {
	if a.priority.yielded, err = a.yields.wait(a.ctx, a.name); err != nil {
		return nil, fmt.Errorf("%w: %w", &sqllock.HeldError{Name: a.name}, err)
	}
	return a.poll()
}

// holds reports whether a lock of this Locker has the name.
func (l *Locker) holds(name string) bool {
	for _, ls := range l.everyLease() {
		if ls.holds(name) {
			return true
		}
	}
	return false
}

func (ls *lease) holds(name string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for le := range ls.locks {
		if le.Name() == name {
			return true
		}
	}
	return false
}

// poll claims the name again and again, after growing pauses. It also repeats a claim that was not answered, which may
// wait for a row that another session has locked. A database that cannot be used, or a lease that ends during a claim,
// does not end the poll: a name that an earlier claim may have acquired is released by lease.
func (a *attempt) poll() (lease *Lease, err error) {
	defer func() {
		if err != nil {
			a.stopExclusive()
		}
		if err != nil || a.permit() || a.holding.Limit.Valid {
			a.priority.withdraw(a)
		}
	}()
	if a.priority.yielded {
		lease, err = a.readAndClaim()
	} else {
		lease, err = a.claim()
	}
	if a.abandoned {
		return nil, err
	}
	var heard <-chan int64
	stop := func() {}
	defer func() { stop() }()
	var held *sqllock.HeldError // nil unless the last answer was that the name is held
	var outage trouble.Pause
	for pause := backoff.First; err != nil; pause = a.longer(pause) {
		now := (*sqllock.HeldError)(nil)
		rest := time.Duration(0)
		switch {
		case errors.As(err, &now):
			if heard == nil {
				heard, stop = a.notifier.listen(a.name)
			}
			held, outage, a.waited = now, 0, true
			a.outage.Over()
			if a.early && a.outlasts(a.holding.State) {
				return nil, held
			}
			a.waitForExclusive()
		case a.abandoned:
			return nil, a.stillHeld(held, err)
		case held != nil && errors.Is(err, dberr.ErrSlow) && !errors.Is(err, store.ErrNoLease):
		case !sqllock.IsRetryable(err):
			return nil, a.stillHeld(held, err)
		default:
			if a.outage.Meet(err) {
				a.events.Retrying(a.ctx, a.name, a.began, err)
			}
			a.leaveReadOnly(err)
			held, a.waited = nil, true
			stop() // the connection of the notifier may have ended, too
			heard, stop = nil, func() {}
			rest, pause = outage.Next(), backoff.First
		}
		first := false
		if now == nil || a.priority.announce(a) == nil {
			if a.next() {
				pause = backoff.First
			}
			if rest == 0 {
				rest = backoff.Jitter(pause)
			}
			if first, err = a.pause(heard, a.holding.untilExpiry(rest)); err != nil {
				return nil, a.stillHeld(held, err)
			}
		}
		if first {
			lease, err = a.claim()
		} else {
			lease, err = a.readAndClaim()
		}
	}
	a.outage.Over()
	return lease, nil
}

// longer returns the next pause. If the notifier is subscribed, a release wakes a, and polling only detects that the
// lock ended in another way. Then the pause is that of the notifier, unless a could not be announced as a waiter.
func (a *attempt) longer(pause time.Duration) time.Duration {
	if a.notifier.subscribed() && a.holding.LeaseID != nil && !a.priority.unannounced {
		return a.notifier.pause
	}
	return backoff.Longer(pause)
}

// next reports whether a has waited longest for a name that is handed from one holder to the next, and is not notified
// of that.
func (a *attempt) next() bool {
	return a.holding.changedHands && a.priority.first(a.holding.State) && !a.notifier.subscribed()
}

// pause waits for the given time, or until the name is released. It reports whether a claims first: a release woke it,
// and it has waited longest. A waiter that was woken and has not waited longest yields to the others before pause
// returns.
func (a *attempt) pause(heard <-chan int64, pause time.Duration) (first bool, err error) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false, nil
	case <-a.ctx.Done():
		return false, context.Cause(a.ctx)
	case since := <-heard:
		if since >= a.priority.since {
			return true, nil
		}
		return false, a.yield()
	}
}

// readAndClaim claims the name unless a read, which writes nothing, finds it held. If another process has waited
// longer, readAndClaim gives it the time to acquire the name first, once.
func (a *attempt) readAndClaim() (*Lease, error) {
	state, err := a.read()
	for err == nil && !state.Taken() && a.priority.yieldsTo(state) {
		free := state
		if err = a.yield(); err == nil {
			state, err = a.read()
		}
		if err == nil && state.Token == free.Token {
			a.priority.absent = free.WaiterUS
		}
	}
	if err != nil {
		return nil, err
	}
	if a.blocked(state) {
		held := a.held(state)
		if ended, err := a.expireUnchanged(); !ended || err != nil {
			return nil, cmp.Or(err, held)
		}
	}
	return a.claim()
}

// held returns the error for a name that was read as held, and remembers the state.
func (a *attempt) held(state store.State) error {
	a.observe(state)
	if err := a.mismatch(state); err != nil {
		return err
	}
	return heldBy(a.name, state)
}

// outlasts reports whether the holders in state hold the name beyond the deadline of the context, unless they release
// it.
func (a *attempt) outlasts(state store.State) bool {
	deadline, ok := a.ctx.Deadline()
	return ok && time.Until(deadline) < a.lasts(state)
}

// observation is the last state that was read of a lease that holds a name, and since when that lease has not been
// renewed, by the clock of this process. If that is longer ago than its TTL, its holder no longer trusts it. Then only
// the clock of the database, which was set back, keeps it from being over.
type observation struct {
	store.State
	since        time.Time
	expiry       time.Time // when the lease expires unless it is renewed
	changedHands bool      // the name had another token in the state before
}

func (s *observation) update(state store.State) {
	if s.since.IsZero() || !bytes.Equal(s.LeaseID, state.LeaseID) || s.Renewals != state.Renewals {
		s.since = time.Now()
	}
	s.changedHands = s.Token != state.Token && s.Token != 0
	s.State = state
	s.expiry = time.Now().Add(time.Duration(state.RemainingUS) * time.Microsecond)
}

// untilExpiry shortens a pause that would last beyond the expiry of the lease. It adds jitter, so that not all waiters
// read at the same moment.
func (s *observation) untilExpiry(pause time.Duration) time.Duration {
	if left := time.Until(s.expiry); left > 0 && left < pause {
		return min(pause, left+rand.N(backoff.First)) //nolint:gosec // jitter
	}
	return pause
}

func (s *observation) unchangedForTTL() bool {
	return s.LeaseID != nil && time.Since(s.since) > time.Duration(s.TTLUS)*time.Microsecond
}

// read reads the state of the name.
func (a *attempt) read() (state store.State, err error) {
	err = dberr.Once(a.ctx, dberr.AttemptTimeout, func(ctx context.Context) (err error) {
		state, err = a.store.Read(ctx, a.name)
		return err
	})
	return state, err
}

// stillHeld returns the error of a wait. If its context has ended, the error also says that the name is held, if the
// last answer said so, and otherwise what the trouble with the database was.
func (a *attempt) stillHeld(held *sqllock.HeldError, err error) error {
	met := a.outage.Last() != nil
	if held == nil && a.priority.yielded && !met { // a yielded to other processes
		held = &sqllock.HeldError{Name: a.name}
	}
	switch {
	case !bound.Ended(a.ctx):
		return err
	case held != nil:
		return fmt.Errorf("%w: %w", held, context.Cause(a.ctx))
	case met:
		return a.outage.With(context.Cause(a.ctx))
	}
	return err
}
