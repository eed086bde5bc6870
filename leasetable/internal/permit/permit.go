package permit

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/waitqueue"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// A name that is shared or has a limit has one row of sqllock_permit for each holder. Here a permit is either a share
// (without a limit) or a permit of a semaphore. An acquisition reads all permits at once. It takes one on the condition
// that the name's token is still the one that was read: every acquisition bumps the token, and a release only makes
// room.

// Claims claims shares and permits for the goroutines of a Locker.
type Claims struct {
	Keeper   *lease.Keeper
	claiming waitqueue.Tries[string] // one claim on a permit of a name at a time
	clearing atomic.Bool             // a goroutine clears dead permits
}

// unreadyRounds bounds how often a claim starts again because dead permits cannot be cleared.
const unreadyRounds = 5

// Claim takes a permit of a name for c, on behalf of caller. The claims of one process run one after the other, since
// they would conflict with each other. Those that wait while the database cannot be read share that error. Claim settles an
// orphan before it asks for the same permit again (I32).
func (cs *Claims) Claim(ctx, caller context.Context, c *lease.Claim, w Wants) (o lease.Outcome) {
	o.Permit = true
	if err := cs.claiming.Wait(caller, c.Name); err != nil { // nothing was taken yet: the caller may leave
		o.Err = err
		return o
	}
	var unread error
	defer func() { cs.claiming.Done(c.Name, unread) }()
	ctx, cancel := context.WithTimeout(ctx, dberr.ConflictTimeout)
	defer cancel()
	unready, asked := 0, int64(0)
	for pause := backoff.First; ; pause = backoff.Longer(pause) {
		o.State, o.Err = cs.read(ctx, c.Name)
		if o.Err == nil && asked != 0 && o.State.Has(c.ID, asked) { // an earlier round took it, whatever the answer was
			o.Token = asked
			return o
		}
		if sqllock.IsRetryable(o.Err) && ctx.Err() == nil { // not because the time of this claim is up
			unread = o.Err
		}
		if o.Err != nil || w.Blocked(o.State) {
			return o
		}
		if c.Orphans.Has(c.Name, o.State.Token+1) {
			o.Err = dberr.RetryConflicts(ctx, dberr.AttemptTimeout, func(ctx context.Context) error {
				return c.Orphans.SettlePermit(ctx, c.Name, o.State)
			})
			if o.Err != nil {
				return o
			}
			continue
		}
		ready, err := cs.makeRoom(ctx, c, w, &o.State)
		if err != nil {
			o.Err = err
			return o
		}
		if !ready {
			if unready++; unready == unreadyRounds {
				return o
			}
		} else {
			asked = o.State.Token + 1
			o.Token, o.Err = cs.take(ctx, c, o.State, w.Limit)
			if o.Token != 0 {
				cs.clearLater(ctx, c, o.State)
			}
			if o.Token != 0 || o.Err != nil {
				return o
			}
		}
		// Another claim was faster. Permits may still be left.
		if err := backoff.Sleep(ctx, jitter.Around(pause)); err != nil {
			o.Err = dberr.Classify(err)
			return o
		}
	}
}

// take takes a permit of a name that is as in state. If it is unknown whether it did, it notes that before the next claim of
// this process begins.
func (cs *Claims) take(ctx context.Context, c *lease.Claim, state store.State, limit int) (token int64, err error) {
	err = dberr.ErrUnreturned // if a driver ends the goroutine
	defer func() {
		if err != nil && !dberr.OutcomeKnown(err) {
			c.Orphans.LeaveClaim(c.Name, state)
		}
	}()
	return dberr.Value(ctx, dberr.RetryConflicts, c.Timeout(), func(ctx context.Context) (int64, error) {
		return cs.Keeper.Store.AcquirePermit(ctx, c.Name, state, c.ID, limit)
	})
}

func (cs *Claims) read(ctx context.Context, name string) (store.State, error) {
	return dberr.Value(ctx, dberr.RetryConflicts, dberr.AttemptTimeout, func(ctx context.Context) (store.State, error) {
		return cs.Keeper.Store.ReadPermits(ctx, name)
	})
}

// makeRoom clears dead leases and permits, as read in state, that are in the way. It reports whether a permit can be
// taken on the condition that no acquisition came since.
func (cs *Claims) makeRoom(ctx context.Context, c *lease.Claim, w Wants, state *store.State) (ready bool, err error) {
	if state.LeaseID != nil { // an exclusive holder: the claim clears it from the lock row
		return cs.endDead(ctx, c, *state)
	}
	return cs.clearDead(ctx, c, state, w.fits)
}

// endDead makes sure that a lease which has expired is over for good, and reports whether it is (I33).
func (cs *Claims) endDead(ctx context.Context, c *lease.Claim, state store.State) (bool, error) {
	switch {
	case state.Gone:
		return true, nil
	case bytes.Equal(state.LeaseID, c.ID): // our own lease, which ends by itself
		return false, nil
	}
	return cs.Keeper.Expire(ctx, state.LeaseID)
}

// clearDead clears dead permits, as read in state, until enough says that those that are left will do, and reports whether
// they do. It removes them from state, too. It cannot clear a permit whose guarded transaction goes on, or whose lease was
// renewed after all (I33).
func (cs *Claims) clearDead(
	ctx context.Context, c *lease.Claim, state *store.State, enough func(left []store.State) bool,
) (done bool, err error) {
	over := make(map[string]bool) // by lease: whether it is
	live := state.Together()
	state.Permits = slices.Concat(live, state.Dead())
	for i := len(state.Permits) - 1; i >= len(live) && !enough(state.Permits); i-- { // from the end: few are moved for each
		p := state.Permits[i]
		id := string(p.LeaseID)
		if _, asked := over[id]; !asked {
			if over[id], err = cs.endDead(ctx, c, p); err != nil {
				return false, err
			}
		}
		if !over[id] {
			continue
		}
		cleared, err := dberr.Value(ctx, dberr.RetryConflicts, dberr.ConflictTimeout, func(ctx context.Context) (bool, error) {
			return cs.Keeper.Store.ClearPermit(ctx, c.Name, p)
		})
		if err != nil {
			return false, err
		}
		if cleared {
			state.Permits = slices.Delete(state.Permits, i, i+1)
		}
	}
	return enough(state.Permits), nil
}

// maxCleared bounds how many dead permits clearLater clears at a time.
const maxCleared = 100

// clearLater clears dead permits in the background that are in nobody's way. Otherwise they would accumulate for a name
// that always has live permits. One goroutine of a Locker does so at a time.
func (cs *Claims) clearLater(ctx context.Context, c *lease.Claim, state store.State) {
	if len(state.Dead()) == 0 || !cs.clearing.CompareAndSwap(false, true) {
		return
	}
	err := cs.Keeper.Start(func() {
		defer cs.clearing.Store(false)
		ctx, cancel := cs.Keeper.Bound(context.WithoutCancel(ctx))
		defer cancel()
		// The next acquisition retries what fails.
		_ = dberr.Once(ctx, dberr.AttemptTimeout, func(ctx context.Context) error {
			few := len(state.Permits) - maxCleared
			_, err := cs.clearDead(ctx, c, &state, func(left []store.State) bool { return len(left) <= few })
			return err
		})
	})
	if err != nil {
		cs.clearing.Store(false)
	}
}

// MakeWhole clears the permits of a name as read in state, which are all dead, so that the name can be converted (I30).
// It reports whether it did. If there are too many for its time, it returns an error that may pass: the next claim clears the
// rest.
func (cs *Claims) MakeWhole(ctx context.Context, c *lease.Claim, state store.State) (bool, error) {
	began, late := time.Now(), false
	_, err := cs.clearDead(ctx, c, &state, func(left []store.State) bool {
		late = len(left) > 0 && time.Since(began) > dberr.ConflictTimeout
		return len(left) == 0 || late
	})
	if err == nil && late {
		err = errManyDead
	}
	return len(state.Permits) == 0, err
}

// errManyDead is the error of a claim that could not clear all dead shares or permits in its time.
var errManyDead = &dberr.Error{
	Err:          fmt.Errorf("%w: many shares or permits of processes that have died are being cleared", dberr.ErrSlow),
	OutcomeKnown: true,
	Transient:    true,
}
