package leasetable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/trouble"
	"github.com/sqllock/sqllock/internal/waiting"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// wait acquires the name as soon as it is free or its lease is over. It waits in the wait queue of this process first
// (I2).
func (a *attempt) wait() (lock *lease.Held, err error) {
	if a.choice.wait != nil {
		return a.waitAtMost()
	}
	var h lease.Handoff
	if !a.Queue.Try(a.name) {
		a.waits()
		if h, err = a.waitInQueue(); err != nil {
			return nil, err
		}
	}
	a.enterQueue()
	if h.Claim != nil {
		return a.leaveUnlessHeld(a.receiveHandoff(h))
	}
	if !h.RetryNow { // other processes have their chance first
		if a.waiter.Yielded, err = a.Yields.Wait(a.ctx, a.name); err != nil {
			return a.leaveUnlessHeld(nil, fmt.Errorf("%w: %w", &sqllock.HeldError{Name: a.name}, err))
		}
	}
	return a.leaveUnlessHeld(a.poll())
}

// waits reports, once, that the attempt has to wait.
func (a *attempt) waits() {
	if !a.waited {
		a.waited = true
		a.events.Waiting(a.ctx, a.name, a.began)
	}
}

// waitAtMost is wait, for as long as the options allow.
func (a *attempt) waitAtMost() (*lease.Held, error) {
	most := a.choice.wait
	a.choice.wait = nil
	return waiting.AtMost(a.ctx, most,
		func(context.Context) (*lease.Held, error) { return a.try() }, //nolint:contextcheck // a has the context
		func(ctx context.Context) (*lease.Held, error) {
			a.ctx = ctx
			return a.wait() //nolint:contextcheck // a has the context
		})
}

// waitInQueue waits for the head of the wait queue of this process.
func (a *attempt) waitInQueue() (lease.Handoff, error) {
	if a.early || a.Permit() {
		if state, err := a.read(a.ctx); err == nil && a.Blocked(state) {
			held := a.held(state)
			if a.early && a.waiter.Outlasts(a.ctx, state) || a.mismatched(state) != nil {
				return lease.Handoff{}, held
			}
		}
	}
	h, err := a.Queue.WaitWith(a.ctx, a.name, lease.Word{TTL: a.ttl, Permit: a.Permit(), Metadata: string(a.metadata)})
	switch {
	case err != nil && a.outage.Last() != nil && !a.Holds(a.name): // the goroutine ahead in the wait queue waits for the database
		return h, a.outage.With(err)
	case err != nil:
		return h, fmt.Errorf("%w: %w", &sqllock.HeldError{Name: a.name}, err)
	}
	return h, nil
}

// poll claims the name again and again, after growing pauses (I35). It also repeats a claim that was not answered,
// which may wait for a row that another session has locked. A database that cannot be used, or a lease that ends during
// a claim, does not end the poll: a name that an earlier claim may have acquired is released by lease.
func (a *attempt) poll() (lock *lease.Held, err error) {
	defer func() {
		if err != nil {
			a.waiter.StopExclusive()
		}
		if err != nil || a.Permit() || a.waiter.Holding.Limit.Valid {
			a.waiter.Withdraw()
		}
	}()
	came := a.waiter.StandFirst(a.ctx)
	if a.waiter.Yielded && bound.Ended(a.ctx) { // in the queue: no statement was sent that the database did not answer
		return nil, a.stillHeld(nil, context.Cause(a.ctx))
	}
	if came || !a.waiter.Yielded {
		lock, err = a.claim()
	} else {
		lock, err = a.readAndClaim()
	}
	if a.abandoned {
		return nil, err
	}
	var held *sqllock.HeldError // nil unless the last answer was that the name is held
	var outage trouble.Pause
	for pause := backoff.First; err != nil; pause = a.waiter.Longer(pause) {
		now := (*sqllock.HeldError)(nil)
		rest := time.Duration(0)
		switch {
		case errors.As(err, &now):
			held, outage = now, 0
			a.waits()
			a.outage.Over()
			if a.early && !came && a.waiter.Outlasts(a.ctx, a.waiter.Holding.State) {
				return nil, held
			}
			a.waiter.WaitForExclusive(a.ctx)
		case a.abandoned:
			return nil, a.stillHeld(held, err)
		case held != nil && errors.Is(err, dberr.ErrSlow) && !errors.Is(err, store.ErrNoLease):
		case !sqllock.IsRetryable(err):
			return nil, a.stillHeld(held, err)
		case bound.Ended(a.ctx) && a.outage.Last() != nil: // which cut this attempt off: what the database answered before counts
			return nil, a.stillHeld(nil, err)
		default:
			a.waits()
			if a.outage.Meet(err) {
				a.events.Retrying(a.ctx, a.name, a.began, err)
			}
			a.LeaveReadOnly(err)
			held = nil
			rest, pause = outage.Next(), backoff.First
		}
		came = false
		switch {
		case rest != 0: // an outage
			err = backoff.Sleep(a.ctx, rest)
		case now == nil || a.waiter.Announce(a.ctx) == nil:
			came, err = a.waiter.Pause(a.ctx, jitter.Around(pause))
		default:
			err = nil
		}
		if err != nil {
			return nil, a.stillHeld(held, err)
		}
		if came { // the process that had the turn has just released the name, or is about to
			pause = backoff.First / 10
			lock, err = a.claim()
		} else {
			lock, err = a.readAndClaim()
		}
	}
	lock.HoldTurn()
	return lock, nil
}

// readAndClaim claims the name unless a read, which writes nothing, finds it held (I35).
func (a *attempt) readAndClaim() (*lease.Held, error) {
	state, err := a.read(a.ctx)
	if err != nil {
		return nil, err
	}
	if a.Blocked(state) {
		held := a.held(state)
		if ended, err := a.waiter.ExpireUnchanged(a.ctx); !ended || err != nil {
			return nil, cmp.Or(err, held)
		}
	}
	return a.claim()
}

// held returns the error for a name that was read as held, and remembers the state.
func (a *attempt) held(state store.State) error {
	a.waiter.Observe(state)
	if err := a.mismatched(state); err != nil {
		return err
	}
	held := &sqllock.HeldError{Name: a.name}
	if state.Taken() || state.LeaseID != nil {
		held.Holder = state.Holder()
	}
	return held
}

// read reads the state of the name.
func (a *attempt) read(ctx context.Context) (store.State, error) {
	return dberr.Value(ctx, dberr.Once, dberr.AttemptTimeout, func(ctx context.Context) (store.State, error) { return a.Store.Read(ctx, a.name) })
}

// stillHeld returns the error of a wait. If its context has ended, the error also says that the name is held, if the
// last answer said so, and otherwise what the trouble with the database was.
func (a *attempt) stillHeld(held *sqllock.HeldError, err error) error {
	met := a.outage.Last() != nil
	if held == nil && a.waiter.Yielded && !met { // a yielded to other processes
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
