package leasetable

import (
	"bytes"
	"context"
	"slices"
	"time"
)

// A name that several hold together has a row of sqllock_permit for each of them. Who wants a place looks
// at all of them at once, and takes one on the condition that the name's token is still the one that it saw:
// whoever comes raises the token, and whoever goes only makes room.

// placeOn takes a place of the name for t's lease. Claims of one process come one after the other: they
// would be in each other's way.
func (a *attempt) claimPermit(ctx context.Context, ls *lease) (o outcome) {
	o.permit = true
	if _, err := a.claimingPermit.Wait(a.ctx, a.name); err != nil { //nolint:contextcheck // nothing was taken yet: the caller may leave
		o.err = err
		return o
	}
	defer a.claimingPermit.Done(a.name)
	ctx, cancel := context.WithTimeout(ctx, conflictTimeout)
	defer cancel()
	unready, asked := 0, int64(0)
	for pause := firstPause; ; pause = longer(pause) {
		o.state, o.err = a.readPermits(ctx)
		if o.err == nil && asked != 0 && o.state.has(ls.id, asked) { // it was taken, whatever was answered
			o.token = asked
			return o
		}
		if o.err != nil || a.blocked(o.state) {
			return o
		}
		if orphan := (orphanPermit{a.name, o.state.Token + 1}); ls.mayHave(orphan) {
			if o.err = ls.releaseOrphanPermit(ctx, orphan); o.err != nil {
				return o
			}
			continue
		}
		ready, err := a.makeRoom(ctx, ls, o.state)
		if err != nil {
			o.err = err
			return o
		}
		if !ready {
			if unready++; unready == claimRounds {
				return o
			}
		} else {
			asked = o.state.Token + 1
			o.err = retryConflicts(ctx, func(ctx context.Context) (err error) {
				o.token, err = a.store.acquirePermit(ctx, a.name, o.state, ls.id, a.limit)
				return err
			})
			if o.err != nil && !outcomeKnown(o.err) { // noted before the next claim of this process begins
				ls.leaveOrphanPermit(a.name, asked)
			}
			if o.token != 0 {
				a.clearLater(ctx, ls, o.state)
			}
			if o.token != 0 || o.err != nil {
				return o
			}
		}
		// Somebody was faster. That does not mean that no place is left.
		if err := sleep(ctx, jitter(pause)); err != nil {
			o.err = classify(err)
			return o
		}
	}
}

func (a *attempt) readPermits(ctx context.Context) (state lockState, err error) {
	err = once(ctx, attemptTimeout, func(ctx context.Context) (err error) {
		state, err = a.store.readPermits(ctx, a.name)
		return err
	})
	return state, err
}

// makeRoom ends what is over and in the way, as seen. It reports whether a place can be taken on the
// condition that nobody has come since.
func (a *attempt) makeRoom(ctx context.Context, ls *lease, state lockState) (ready bool, err error) {
	if state.LeaseID != nil { // who held the name alone; its row is changed together with the claim
		return a.endDead(ctx, ls, state)
	}
	left := slices.Clone(state.permits)
	for _, p := range state.dead() { // a transaction that one of them guards goes on as if it lived
		if a.fits(left) {
			break
		}
		cleared, err := a.clear(ctx, ls, p)
		if err != nil {
			return false, err
		}
		if cleared {
			left = slices.DeleteFunc(left, func(other lockState) bool { return other.Token == p.Token })
		}
	}
	return a.fits(left), nil
}

// fits reports whether one more can hold the name beside those who have these places: fewer do than it asks for, and than each of
// them has asked for. Those without a limit and those with one do not hold it together.
func (c choice) fits(places []lockState) bool {
	for _, p := range places {
		limit := p.Permits.Int64
		if (limit == 0) != (c.limit == 0) || limit > 0 && int64(len(places)) >= limit {
			return false
		}
	}
	return c.limit == 0 || len(places) < c.limit
}

// limitOf is how many may hold a name together by those who do, or 0 for any number.
func limitOf(places []lockState) (limit int) {
	for _, p := range places {
		if n := int(p.Permits.Int64); n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}

// endDead makes sure that a lease which has expired is over for good, and reports whether it is.
func (a *attempt) endDead(ctx context.Context, ls *lease, state lockState) (bool, error) {
	switch {
	case state.Gone:
		return true, nil
	case bytes.Equal(state.LeaseID, ls.id): // ends by itself
		return false, nil
	}
	return a.expireLease(ctx, expire, state.LeaseID)
}

// clearDead clears so many of the places that were seen and whose leases are over, and reports whether it did: not
// those whose holders guard a transaction that goes on, and not one whose lease was renewed after all.
func (a *attempt) clearDead(ctx context.Context, ls *lease, state lockState, n int) (done bool, err error) {
	for _, p := range state.dead() {
		if n <= 0 {
			break
		}
		cleared, err := a.clear(ctx, ls, p)
		if err != nil {
			return false, err
		}
		if cleared {
			n--
		}
	}
	return n <= 0, nil
}

// clear clears the place of a lease that is over, if it can.
func (a *attempt) clear(ctx context.Context, ls *lease, p lockState) (cleared bool, err error) {
	over, err := a.endDead(ctx, ls, p)
	if err != nil || !over {
		return false, err
	}
	err = retryConflicts(ctx, func(ctx context.Context) (err error) {
		cleared, err = a.store.clearPermit(ctx, a.name, p)
		return err
	})
	return cleared, err
}

// mostCleared bounds how many dead places are cleared at a time.
const maxCleared = 100

// clearLater clears places in the background whose leases are over and that are in nobody's way: of a name
// that is always shared they would become ever more. One goroutine of a Locker does so.
func (a *attempt) clearLater(ctx context.Context, ls *lease, state lockState) {
	if len(state.dead()) == 0 || !a.clearing.CompareAndSwap(false, true) {
		return
	}
	err := a.start(func() {
		defer a.clearing.Store(false)
		ctx, cancel := a.bound(context.WithoutCancel(ctx))
		defer cancel()
		// What fails is tried again by who comes next.
		_ = once(ctx, attemptTimeout, func(ctx context.Context) error {
			_, err := a.clearDead(ctx, ls, state, maxCleared)
			return err
		})
	})
	if err != nil {
		a.clearing.Store(false)
	}
}

// abandonPlace gives back a place that was taken.
func (a *attempt) abandonPermit(ls *lease, o outcome) {
	if o.token == 0 {
		return
	}
	if _, err := ls.releasePermit(context.WithoutCancel(a.ctx), a.name, o.token); err != nil {
		ls.leaveOrphanPermit(a.name, o.token)
	}
}

// convert takes for t's lease the whole of a name that was held together by several, when nobody does
// any more. It reports whether that could be tried.
func (a *attempt) convert(ctx context.Context, ls *lease, state lockState) (o outcome, tried bool) {
	if tried, o.err = a.clearDead(ctx, ls, state, len(state.permits)); !tried || o.err != nil {
		return o, tried
	}
	return a.take(ctx, func(ctx context.Context) (int64, error) {
		return a.store.claim(ctx, convert, ls.id, bytesOf(a.metadata), row{[]byte(a.name)}, state.Token)
	}), true
}

// live reports whether the lease of a row is not over, or the name is kept.
func (s lockState) live() bool { return !s.Gone && s.RemainingUS > 0 }

// together returns those who hold the name together, the one who came first first.
func (s lockState) together() (live []lockState) {
	for _, p := range s.permits {
		if p.live() {
			live = append(live, p)
		}
	}
	return live
}

// dead returns the places whose leases are over.
func (s lockState) dead() (dead []lockState) {
	for _, p := range s.permits {
		if !p.live() {
			dead = append(dead, p)
		}
	}
	return dead
}

// has reports whether a place is that of a lease with a token.
func (s lockState) has(id []byte, token int64) bool {
	for _, p := range s.permits {
		if p.Token == token && bytes.Equal(p.LeaseID, id) {
			return true
		}
	}
	return false
}

// wantedAlone is for how long nobody joins those who hold the name together.
func (s lockState) exclusiveWaiterFor() time.Duration {
	return time.Duration(s.ExclusiveUS) * time.Microsecond
}
