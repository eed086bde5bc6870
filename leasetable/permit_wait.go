package leasetable

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
)

// aloneTime is for how long nobody joins those who hold a name together once somebody was seen to wait to hold
// it alone. Who goes on waiting says so again when half of it has passed.
const exclusiveTime = 5 * time.Second

// blocked reports whether what was seen is in the way of this attempt.
func (a *attempt) blocked(state lockState) bool {
	if !a.permit() {
		return state.taken()
	}
	return state.live() || !a.fits(state.together()) || state.exclusiveWaiterFor() > 0
}

// mismatch is the error for a name that others hold together with a limit if this is asked for without one, or the other way round.
func (a *attempt) mismatch(state lockState) error {
	others := state.together()
	held := limitOf(others)
	if !a.permit() || len(others) == 0 || (held == 0) == (a.limit == 0) {
		return nil
	}
	return &LimitError{Asked: a.limit, Held: held, Holder: others[0].holder()}
}

// watch remembers the leases that hold a name together as they were seen; see still.
func (a *attempt) observe(state lockState) {
	a.holding.update(state)
	now := make(map[string]observation)
	for _, p := range state.together() {
		s := a.others[string(p.LeaseID)]
		s.update(p)
		now[string(p.LeaseID)] = s
		if first := len(now) == 1; first && !state.live() || s.expiry.Before(a.holding.expiry) {
			a.holding.expiry = s.expiry
		}
	}
	a.others = now
}

// endStill ends those of the leases in the way that have stood still for a TTL, and reports whether there
// were any.
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
		if _, err := a.expireLease(a.ctx, expireUnchanged, s.LeaseID, s.Renewals); err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// lasts is for how long what was seen is in the way unless it is released before.
func (a *attempt) lasts(state lockState) time.Duration {
	us := state.RemainingUS
	together := state.together()
	slices.SortFunc(together, func(a, b lockState) int { return cmp.Compare(a.RemainingUS, b.RemainingUS) })
	for i, p := range together {
		us = p.RemainingUS
		if a.permit() && a.fits(together[i+1:]) {
			break
		}
	}
	return time.Duration(us) * time.Microsecond
}

// heldBy is the error for a name that was seen to be held.
func heldBy(name string, state lockState) error {
	held := &sqllock.HeldError{Name: name}
	if state.taken() || state.LeaseID != nil {
		held.Holder = state.holder()
	}
	return held
}

// wantAlone keeps others from joining those who hold the name together, so that it comes free. It is said once in
// a while, by one of those who wait. That it fails is no reason to end a wait.
func (a *attempt) waitForExclusive() {
	if a.permit() || len(a.others) == 0 || a.holding.exclusiveWaiterFor() > exclusiveTime/2 {
		return
	}
	a.saidExclusive = true
	_ = once(a.ctx, attemptTimeout, func(ctx context.Context) error {
		return a.store.noteExclusiveWaiter(ctx, a.name, exclusiveTime.Microseconds())
	})
}

// wantNoMore takes it back, for somebody who gave up. If others wait as well they say so again.
func (a *attempt) stopExclusive() {
	if !a.saidExclusive {
		return
	}
	_ = a.start(func() { // of a Locker that is closed it ends by itself
		_ = once(a.closing, attemptTimeout, func(ctx context.Context) error { return a.store.noteExclusiveWaiter(ctx, a.name, nil) })
	})
}
