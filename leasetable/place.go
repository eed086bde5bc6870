package leasetable

import (
	"bytes"
	"context"
	"slices"
	"time"
)

// A name that several hold together has a row of sqllock_place for each of them. Who wants a place looks
// at all of them at once, and takes one on the condition that the name's token is still the one that it saw:
// whoever comes raises the token, and whoever goes only makes room.

// placeOn takes a place of the name for t's lease. Claims of one process come one after the other: they
// would be in each other's way.
func (a *attempt) placeOn(ctx context.Context, t *term) (o outcome) {
	o.place = true
	if _, err := a.placing.Wait(a.ctx, a.name); err != nil { //nolint:contextcheck // nothing was taken yet: the caller may leave
		o.err = err
		return o
	}
	defer a.placing.Done(a.name)
	ctx, cancel := context.WithTimeout(ctx, conflictTimeout)
	defer cancel()
	unready, asked := 0, int64(0)
	for pause := firstPause; ; pause = longer(pause) {
		o.seen, o.err = a.lookAtPlaces(ctx)
		if o.err == nil && asked != 0 && o.seen.has(t.id, asked) { // it was taken, whatever was answered
			o.token = asked
			return o
		}
		if o.err != nil || a.blocked(o.seen) {
			return o
		}
		if stray := (strayPlace{a.name, o.seen.Token + 1}); t.mayHave(stray) {
			if o.err = t.freeStray(ctx, stray); o.err != nil {
				return o
			}
			continue
		}
		ready, err := a.makeRoom(ctx, t, o.seen)
		if err != nil {
			o.err = err
			return o
		}
		if !ready {
			if unready++; unready == claimRounds {
				return o
			}
		} else {
			asked = o.seen.Token + 1
			o.err = retryConflicts(ctx, func(ctx context.Context) (err error) {
				o.token, err = a.store.takePlace(ctx, a.name, o.seen, t.id, a.limit)
				return err
			})
			if o.err != nil && !answered(o.err) { // noted before the next claim of this process begins
				t.leavePlace(a.name, asked)
			}
			if o.token != 0 {
				a.clearLater(ctx, t, o.seen)
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

func (a *attempt) lookAtPlaces(ctx context.Context) (seen sight, err error) {
	err = once(ctx, attemptTimeout, func(ctx context.Context) (err error) {
		seen, err = a.store.lookPlaces(ctx, a.name)
		return err
	})
	return seen, err
}

// makeRoom ends what is over and in the way, as seen. It reports whether a place can be taken on the
// condition that nobody has come since.
func (a *attempt) makeRoom(ctx context.Context, t *term, seen sight) (ready bool, err error) {
	if seen.LeaseID != nil { // who held the name alone; its row is changed together with the claim
		return a.endDead(ctx, t, seen)
	}
	left := slices.Clone(seen.places)
	for _, p := range seen.dead() { // a transaction that one of them guards goes on as if it lived
		if a.fits(left) {
			break
		}
		cleared, err := a.clear(ctx, t, p)
		if err != nil {
			return false, err
		}
		if cleared {
			left = slices.DeleteFunc(left, func(other sight) bool { return other.Token == p.Token })
		}
	}
	return a.fits(left), nil
}

// fits reports whether one more can hold the name beside those who have these places: fewer do than it asks for, and than each of
// them has asked for. Those without a limit and those with one do not hold it together.
func (c choice) fits(places []sight) bool {
	for _, p := range places {
		limit := p.Places.Int64
		if (limit == 0) != (c.limit == 0) || limit > 0 && int64(len(places)) >= limit {
			return false
		}
	}
	return c.limit == 0 || len(places) < c.limit
}

// limitOf is how many may hold a name together by those who do, or 0 for any number.
func limitOf(places []sight) (limit int) {
	for _, p := range places {
		if n := int(p.Places.Int64); n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}

// endDead makes sure that a lease which has expired is over for good, and reports whether it is.
func (a *attempt) endDead(ctx context.Context, t *term, seen sight) (bool, error) {
	switch {
	case seen.Gone:
		return true, nil
	case bytes.Equal(seen.LeaseID, t.id): // ends by itself
		return false, nil
	}
	return a.bury(ctx, bury, seen.LeaseID)
}

// clearDead clears so many of the places that were seen and whose leases are over, and reports whether it did: not
// those whose holders guard a transaction that goes on, and not one whose lease was renewed after all.
func (a *attempt) clearDead(ctx context.Context, t *term, seen sight, n int) (done bool, err error) {
	for _, p := range seen.dead() {
		if n <= 0 {
			break
		}
		cleared, err := a.clear(ctx, t, p)
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
func (a *attempt) clear(ctx context.Context, t *term, p sight) (cleared bool, err error) {
	over, err := a.endDead(ctx, t, p)
	if err != nil || !over {
		return false, err
	}
	err = retryConflicts(ctx, func(ctx context.Context) (err error) {
		cleared, err = a.store.clearPlace(ctx, a.name, p)
		return err
	})
	return cleared, err
}

// mostCleared bounds how many dead places are cleared at a time.
const mostCleared = 100

// clearLater clears places in the background whose leases are over and that are in nobody's way: of a name
// that is always shared they would become ever more. One goroutine of a Locker does so.
func (a *attempt) clearLater(ctx context.Context, t *term, seen sight) {
	if len(seen.dead()) == 0 || !a.clearing.CompareAndSwap(false, true) {
		return
	}
	err := a.start(func() {
		defer a.clearing.Store(false)
		ctx, cancel := a.bound(context.WithoutCancel(ctx))
		defer cancel()
		// What fails is tried again by who comes next.
		_ = once(ctx, attemptTimeout, func(ctx context.Context) error {
			_, err := a.clearDead(ctx, t, seen, mostCleared)
			return err
		})
	})
	if err != nil {
		a.clearing.Store(false)
	}
}

// abandonPlace gives back a place that was taken.
func (a *attempt) abandonPlace(t *term, o outcome) {
	if o.token == 0 {
		return
	}
	if _, err := t.releasePlace(context.WithoutCancel(a.ctx), a.name, o.token); err != nil {
		t.leavePlace(a.name, o.token)
	}
}

// convert takes for t's lease the whole of a name that was held together by several, when nobody does
// any more. It reports whether that could be tried.
func (a *attempt) convert(ctx context.Context, t *term, seen sight) (o outcome, tried bool) {
	if tried, o.err = a.clearDead(ctx, t, seen, len(seen.places)); !tried || o.err != nil {
		return o, tried
	}
	return a.take(ctx, func(ctx context.Context) (int64, error) {
		return a.store.claim(ctx, convert, t.id, bytesOf(a.metadata), row{[]byte(a.name)}, seen.Token)
	}), true
}

// live reports whether the lease of a row is not over, or the name is kept.
func (s sight) live() bool { return !s.Gone && s.RemainingUS > 0 }

// together returns those who hold the name together, the one who came first first.
func (s sight) together() (live []sight) {
	for _, p := range s.places {
		if p.live() {
			live = append(live, p)
		}
	}
	return live
}

// dead returns the places whose leases are over.
func (s sight) dead() (dead []sight) {
	for _, p := range s.places {
		if !p.live() {
			dead = append(dead, p)
		}
	}
	return dead
}

// has reports whether a place is that of a lease with a token.
func (s sight) has(id []byte, token int64) bool {
	for _, p := range s.places {
		if p.Token == token && bytes.Equal(p.LeaseID, id) {
			return true
		}
	}
	return false
}

// wantedAlone is for how long nobody joins those who hold the name together.
func (s sight) wantedAlone() time.Duration { return time.Duration(s.AloneUS) * time.Microsecond }
