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
)

// waitAtMost is wait for as long as the options say.
func (a *attempt) waitAtMost() (*Lease, error) {
	return waiting.AtMost(a.ctx, a.choice.wait,
		func(context.Context) (*Lease, error) { return a.try() }, //nolint:contextcheck // a has it
		func(ctx context.Context) (*Lease, error) {
			a.ctx = ctx
			return a.wait() //nolint:contextcheck // a has it
		})
}

// wait takes the name as soon as it is free or its lease is over.
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
	case err != nil && a.outage.Last() != nil && !a.holds(a.name): // who has the turn waits for the database
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

// afterOthers polls when other processes have had their chance.
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

// poll asks for the name again and again, after pauses that grow. A claim that is not answered is
// repeated as well: it may wait for a row that somebody else has locked. A database that cannot be used, or a lease that ends
// under a claim, is no reason to give up: what an earlier claim may have taken is given back by the name of its lease.
func (a *attempt) poll() (lease *Lease, err error) {
	defer func() {
		if err != nil {
			a.stopExclusive()
		}
		if err != nil || a.permit() || a.holding.Permits.Valid {
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
	var held *sqllock.HeldError // the last that was heard is that the name is held
	var outage trouble.Pause
	for pause := firstPause; err != nil; pause = a.longer(pause) {
		now := (*sqllock.HeldError)(nil)
		rest := time.Duration(0)
		switch {
		case errors.As(err, &now):
			if heard == nil {
				heard, stop = a.notifier.listen(a.name)
			}
			held, outage, a.waited = now, 0, true
			a.outage.Over()
			if a.early && a.outlasts(a.holding.lockState) {
				return nil, held
			}
			a.waitForExclusive()
		case a.abandoned:
			return nil, a.stillHeld(held, err)
		case held != nil && errors.Is(err, errSlow) && !errors.Is(err, errNoLease):
		case !sqllock.IsRetryable(err):
			return nil, a.stillHeld(held, err)
		default:
			if a.outage.Meet(err) {
				a.events.Retrying(a.ctx, a.name, a.began, err)
			}
			a.leaveReadOnly(err)
			held, a.waited = nil, true
			stop() // the connection for that may have ended, too
			heard, stop = nil, func() {}
			rest, pause = outage.Next(), firstPause
		}
		first := false
		if now == nil || a.priority.announce(a) == nil {
			if a.next() {
				pause = firstPause
			}
			if rest == 0 {
				rest = jitter(pause)
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

// longer makes a pause longer. Where releases are heard of, it is for what ends a lock in another way, unless
// nobody could be told that a waits.
func (a *attempt) longer(pause time.Duration) time.Duration {
	if a.notifier.subscribed() && a.holding.LeaseID != nil && !a.priority.unannounced {
		return a.notifier.pause
	}
	return longer(pause)
}

// next reports whether a has waited longest for a name that goes from one to the next, and hears nothing of that.
func (a *attempt) next() bool {
	return a.holding.changedHands && a.priority.first(a.holding.lockState) && !a.notifier.subscribed()
}

// rest returns after a pause, or when the name was released, and then whether it is a's turn. Those who have
// not waited longest let others go first.
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

// lookAndClaim claims the name unless a look, which writes nothing, finds it held. If somebody has waited longer, that one
// has the time to take it first, once.
func (a *attempt) readAndClaim() (*Lease, error) {
	state, err := a.read()
	for err == nil && !state.taken() && a.priority.yieldsTo(state) {
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

// held is the error for a name that was seen to be held.
func (a *attempt) held(state lockState) error {
	a.observe(state)
	if err := a.mismatch(state); err != nil {
		return err
	}
	return heldBy(a.name, state)
}

// outlasts reports whether what was seen to hold the name just now does so beyond the deadline.
func (a *attempt) outlasts(state lockState) bool {
	deadline, ok := a.ctx.Deadline()
	return ok && time.Until(deadline) < a.lasts(state)
}

// still is a lease that holds a name, as it was last seen, and since when it has not been renewed
// by this process's clock. When that is longer ago than its TTL, its holder no longer trusts it,
// and only the database's clock, which was set back, keeps it from being over.
type observation struct {
	lockState
	since        time.Time
	expiry       time.Time // when it will be, unless it is renewed
	changedHands bool      // the name had another token when it was seen before
}

func (s *observation) update(state lockState) {
	if s.since.IsZero() || !bytes.Equal(s.LeaseID, state.LeaseID) || s.Renewals != state.Renewals {
		s.since = time.Now()
	}
	s.changedHands = s.Token != state.Token && s.Token != 0
	s.lockState = state
	s.expiry = time.Now().Add(time.Duration(state.RemainingUS) * time.Microsecond)
}

// untilOver shortens a pause that would last until after the lease has expired. Of all who wait
// for that not everybody looks at the same moment.
func (s *observation) untilExpiry(pause time.Duration) time.Duration {
	if left := time.Until(s.expiry); left > 0 && left < pause {
		return min(pause, left+rand.N(firstPause)) //nolint:gosec // jitter
	}
	return pause
}

func (s *observation) unchangedForTTL() bool {
	return s.LeaseID != nil && time.Since(s.since) > time.Duration(s.TTLUS)*time.Microsecond
}

// look reads who holds the name.
func (a *attempt) read() (state lockState, err error) {
	err = once(a.ctx, attemptTimeout, func(ctx context.Context) (err error) {
		state, err = a.store.read(ctx, a.name)
		return err
	})
	return state, err
}

// stillHeld is the error of a wait: when its context has ended, it says of the name as well that
// it is held, if it was seen to be, and otherwise what the trouble with the database was.
func (a *attempt) stillHeld(held *sqllock.HeldError, err error) error {
	met := a.outage.Last() != nil
	if held == nil && a.priority.yielded && !met { // others had their chance
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
