package leasetable

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// exclusiveTime is for how long an exclusive waiter, once noted, keeps others from taking permits. While it waits, the
// note is renewed when half of that time has passed.
const exclusiveTime = 5 * time.Second

// blocked reports whether state is in the way of this attempt.
func (a *attempt) blocked(state store.State) bool {
	if !a.permit() {
		return state.Taken()
	}
	return state.Live() || !a.fits(state.Together()) || state.ExclusiveWaiterFor() > 0
}

// mismatch returns the error for an attempt with a limit if the live permits have none, or the other way round, and
// otherwise nil.
func (a *attempt) mismatch(state store.State) error {
	others := state.Together()
	held := store.LimitOf(others)
	if !a.permit() || len(others) == 0 || (held == 0) == (a.limit == 0) {
		return nil
	}
	return &LimitError{Asked: a.limit, Held: held, Holder: others[0].Holder()}
}

// observe updates the observations of the leases that hold the name or its permits; see observation.
func (a *attempt) observe(state store.State) {
	a.holding.update(state)
	now := make(map[string]observation)
	for _, p := range state.Together() {
		s := a.others[string(p.LeaseID)]
		s.update(p)
		now[string(p.LeaseID)] = s
		if first := len(now) == 1; first && !state.Live() || s.expiry.Before(a.holding.expiry) {
			a.holding.expiry = s.expiry
		}
	}
	a.others = now
}

// ExpireUnchanged ends those of the leases in the way that were not renewed for a TTL, and reports whether there were
// any.
func (a *attempt) expireUnchanged() (ended bool, err error) {
	in := []observation{a.holding}
	for _, s := range a.others {
		in = append(in, s)
	}
	for _, s := range in {
		if !s.unchangedForTTL() {
			continue
		}
		ended = true
		err := dberr.RetryConflicts(a.ctx, func(ctx context.Context) error {
			_, err := a.store.ExpireUnchanged(ctx, s.LeaseID, s.Renewals)
			return err
		})
		if err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// lasts returns for how long state is in the way of this attempt, unless there is a release before.
func (a *attempt) lasts(state store.State) time.Duration {
	us := state.RemainingUS
	together := state.Together()
	slices.SortFunc(together, func(a, b store.State) int { return cmp.Compare(a.RemainingUS, b.RemainingUS) })
	for i, p := range together {
		us = p.RemainingUS
		if a.permit() && a.fits(together[i+1:]) {
			break
		}
	}
	return time.Duration(us) * time.Microsecond
}

// heldBy returns the error for a name that was read as held.
func heldBy(name string, state store.State) error {
	held := &sqllock.HeldError{Name: name}
	if state.Taken() || state.LeaseID != nil {
		held.Holder = state.Holder()
	}
	return held
}

// waitForExclusive notes an exclusive waiter, so that others take no permits and the name becomes free. The note is
// renewed now and then, by any one of the exclusive waiters. A failure to write it does not end the wait.
func (a *attempt) waitForExclusive() {
	if a.permit() || len(a.others) == 0 || a.holding.ExclusiveWaiterFor() > exclusiveTime/2 {
		return
	}
	a.saidExclusive = true
	_ = dberr.Once(a.ctx, dberr.AttemptTimeout, func(ctx context.Context) error {
		return a.store.NoteExclusiveWaiter(ctx, a.name, exclusiveTime.Microseconds())
	})
}

// stopExclusive removes the note after this attempt gave up. Other exclusive waiters write it again.
func (a *attempt) stopExclusive() {
	if !a.saidExclusive {
		return
	}
	_ = a.start(func() { // if the Locker is closed, the note expires
		_ = dberr.Once(a.closing, dberr.AttemptTimeout, func(ctx context.Context) error { return a.store.NoteExclusiveWaiter(ctx, a.name, nil) })
	})
}
