package leasetable

import (
	"bytes"
	"context"
	"slices"

	"github.com/sqllock/sqllock/leasetable/internal/backoff"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// A name that is shared or has a limit has one row of sqllock_permit for each holder. Here a permit is either a share
// (without a limit) or a permit of a semaphore. An acquisition reads all permits at once. It takes one on the condition
// that the name's token is still the one that was read: every acquisition bumps the token, and a release only makes
// room.

// claimPermit takes a permit of the name for ls. The claims of one process run one after the other, since they would
// conflict with each other.
func (a *attempt) claimPermit(ctx context.Context, ls *lease) (o outcome) {
	o.permit = true
	if _, err := a.claimingPermit.Wait(a.ctx, a.name); err != nil { //nolint:contextcheck // nothing was taken yet: the caller may leave
		o.err = err
		return o
	}
	defer a.claimingPermit.Done(a.name)
	ctx, cancel := context.WithTimeout(ctx, dberr.ConflictTimeout)
	defer cancel()
	unready, asked := 0, int64(0)
	for pause := backoff.First; ; pause = backoff.Longer(pause) {
		o.state, o.err = a.readPermits(ctx)
		if o.err == nil && asked != 0 && o.state.Has(ls.id, asked) { // an earlier round took it, whatever the answer was
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
			o.err = dberr.RetryConflicts(ctx, func(ctx context.Context) (err error) {
				o.token, err = a.store.AcquirePermit(ctx, a.name, o.state, ls.id, a.limit)
				return err
			})
			if o.err != nil && !dberr.OutcomeKnown(o.err) { // note it before the next claim of this process begins
				ls.leaveOrphanPermit(a.name, asked)
			}
			if o.token != 0 {
				a.clearLater(ctx, ls, o.state)
			}
			if o.token != 0 || o.err != nil {
				return o
			}
		}
		// Another claim was faster. Permits may still be left.
		if err := backoff.Sleep(ctx, backoff.Jitter(pause)); err != nil {
			o.err = dberr.Classify(err)
			return o
		}
	}
}

func (a *attempt) readPermits(ctx context.Context) (state store.State, err error) {
	err = dberr.Once(ctx, dberr.AttemptTimeout, func(ctx context.Context) (err error) {
		state, err = a.store.ReadPermits(ctx, a.name)
		return err
	})
	return state, err
}

// makeRoom clears dead leases and permits, as read in state, that are in the way. It reports whether a permit can be
// taken on the condition that no acquisition came since.
func (a *attempt) makeRoom(ctx context.Context, ls *lease, state store.State) (ready bool, err error) {
	if state.LeaseID != nil { // an exclusive holder: the claim clears it from the lock row
		return a.endDead(ctx, ls, state)
	}
	left := slices.Clone(state.Permits)
	for _, p := range state.Dead() { // one whose guarded transaction goes on counts as live
		if a.fits(left) {
			break
		}
		cleared, err := a.clear(ctx, ls, p)
		if err != nil {
			return false, err
		}
		if cleared {
			left = slices.DeleteFunc(left, func(other store.State) bool { return other.Token == p.Token })
		}
	}
	return a.fits(left), nil
}

// fits reports whether one more holder fits in beside these permits: their number is below the limit of c, and below
// the limit of each of them. Permits with a limit and shares without one exclude each other.
func (c choice) fits(places []store.State) bool {
	for _, p := range places {
		limit := p.Limit.Int64
		if (limit == 0) != (c.limit == 0) || limit > 0 && int64(len(places)) >= limit {
			return false
		}
	}
	return c.limit == 0 || len(places) < c.limit
}

// endDead makes sure that a lease which has expired is over for good, and reports whether it is.
func (a *attempt) endDead(ctx context.Context, ls *lease, state store.State) (bool, error) {
	switch {
	case state.Gone:
		return true, nil
	case bytes.Equal(state.LeaseID, ls.id): // our own lease, which ends by itself
		return false, nil
	}
	return a.expireLease(ctx, state.LeaseID)
}

// clearDead clears n of the dead permits in state, and reports whether it did. It cannot clear a permit whose guarded
// transaction goes on, or whose lease was renewed after all.
func (a *attempt) clearDead(ctx context.Context, ls *lease, state store.State, n int) (done bool, err error) {
	for _, p := range state.Dead() {
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

// clear clears the permit of a lease that is over, if it can.
func (a *attempt) clear(ctx context.Context, ls *lease, p store.State) (cleared bool, err error) {
	over, err := a.endDead(ctx, ls, p)
	if err != nil || !over {
		return false, err
	}
	err = dberr.RetryConflicts(ctx, func(ctx context.Context) (err error) {
		cleared, err = a.store.ClearPermit(ctx, a.name, p)
		return err
	})
	return cleared, err
}

// maxCleared bounds how many dead permits clearLater clears at a time.
const maxCleared = 100

// clearLater clears dead permits in the background that are in nobody's way. Otherwise they would accumulate for a name
// that always has live permits. One goroutine of a Locker does so at a time.
func (a *attempt) clearLater(ctx context.Context, ls *lease, state store.State) {
	if len(state.Dead()) == 0 || !a.clearing.CompareAndSwap(false, true) {
		return
	}
	err := a.start(func() {
		defer a.clearing.Store(false)
		ctx, cancel := a.bound(context.WithoutCancel(ctx))
		defer cancel()
		// The next acquisition retries what fails.
		_ = dberr.Once(ctx, dberr.AttemptTimeout, func(ctx context.Context) error {
			_, err := a.clearDead(ctx, ls, state, maxCleared)
			return err
		})
	})
	if err != nil {
		a.clearing.Store(false)
	}
}

// abandonPermit gives back a permit that was taken.
func (a *attempt) abandonPermit(ls *lease, o outcome) {
	if o.token == 0 {
		return
	}
	if _, err := ls.releasePermit(context.WithoutCancel(a.ctx), a.name, o.token); err != nil {
		ls.leaveOrphanPermit(a.name, o.token)
	}
}

// convert takes the name exclusively for ls after all its permits are dead. It reports whether it could try: the dead
// permits were cleared.
func (a *attempt) convert(ctx context.Context, ls *lease, state store.State) (o outcome, tried bool) {
	if tried, o.err = a.clearDead(ctx, ls, state, len(state.Permits)); !tried || o.err != nil {
		return o, tried
	}
	return a.take(ctx, func(ctx context.Context) (int64, error) {
		return a.store.Convert(ctx, a.name, state.Token, ls.id, bytesOf(a.metadata))
	}), true
}
