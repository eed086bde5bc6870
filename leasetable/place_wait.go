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
const aloneTime = 5 * time.Second

// blocked reports whether what was seen is in the way of this attempt.
func (a *attempt) blocked(seen sight) bool {
	if !a.place() {
		return seen.taken()
	}
	return seen.live() || !a.fits(seen.together()) || seen.wantedAlone() > 0
}

// mismatch is the error for a name that others hold together with a limit if this is asked for without one, or the other way round.
func (a *attempt) mismatch(seen sight) error {
	others := seen.together()
	held := limitOf(others)
	if !a.place() || len(others) == 0 || (held == 0) == (a.limit == 0) {
		return nil
	}
	return &LimitError{Asked: a.limit, Held: held, Holder: others[0].holder()}
}

// watch remembers the leases that hold a name together as they were seen; see still.
func (a *attempt) watch(seen sight) {
	a.still.see(seen)
	now := make(map[string]still)
	for _, p := range seen.together() {
		s := a.others[string(p.LeaseID)]
		s.see(p)
		now[string(p.LeaseID)] = s
		if first := len(now) == 1; first && !seen.live() || s.over.Before(a.still.over) {
			a.still.over = s.over
		}
	}
	a.others = now
}

// endStill ends those of the leases in the way that have stood still for a TTL, and reports whether there
// were any.
func (a *attempt) endStill() (ended bool, err error) {
	in := []still{a.still}
	for _, s := range a.others {
		in = append(in, s)
	}
	for _, s := range in {
		if !s.forLong() {
			continue
		}
		ended = true
		if _, err := a.bury(a.ctx, buryStill, s.LeaseID, s.Renewals); err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// lasts is for how long what was seen is in the way unless it is released before.
func (a *attempt) lasts(seen sight) time.Duration {
	us := seen.RemainingUS
	together := seen.together()
	slices.SortFunc(together, func(a, b sight) int { return cmp.Compare(a.RemainingUS, b.RemainingUS) })
	for i, p := range together {
		us = p.RemainingUS
		if a.place() && a.fits(together[i+1:]) {
			break
		}
	}
	return time.Duration(us) * time.Microsecond
}

// heldBy is the error for a name that was seen to be held.
func heldBy(name string, seen sight) error {
	held := &sqllock.HeldError{Name: name}
	if seen.taken() || seen.LeaseID != nil {
		held.Holder = seen.holder()
	}
	return held
}

// wantAlone keeps others from joining those who hold the name together, so that it comes free. It is said once in
// a while, by one of those who wait. That it fails is no reason to end a wait.
func (a *attempt) wantAlone() {
	if a.place() || len(a.others) == 0 || a.still.wantedAlone() > aloneTime/2 {
		return
	}
	a.wanted = true
	_ = once(a.ctx, attemptTimeout, func(ctx context.Context) error {
		return a.store.wantAlone(ctx, a.name, aloneTime.Microseconds())
	})
}

// wantNoMore takes it back, for somebody who gave up. If others wait as well they say so again.
func (a *attempt) wantNoMore() {
	if !a.wanted {
		return
	}
	_ = a.start(func() { // of a Locker that is closed it ends by itself
		_ = once(a.closing, attemptTimeout, func(ctx context.Context) error { return a.store.wantAlone(ctx, a.name, nil) })
	})
}
