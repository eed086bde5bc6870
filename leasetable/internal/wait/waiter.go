package wait

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/backoff"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
	"github.com/sqllock/sqllock/leasetable/internal/permit"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Waiter is one wait for a name that another process holds: what was last read of the name, and the priority of the
// wait among those of other processes. The waiter of another process that has waited longest is noted in the table. A
// release notifies it, and the other waiters yield to it.
type Waiter struct {
	Keeper   *lease.Keeper
	Notifier *Notifier
	Name     string
	Wants    permit.Wants

	Holding observation            // the state of the name when it was last read as held
	others  map[string]observation // the leases that have shares or permits of the name, by id

	since         int64     // since when it waits, by the database's clock, in microseconds since 1970
	announced     time.Time // when since was last written to the table
	unannounced   bool      // since could not be written
	Yielded       bool      // this process had the name just now, and yields to all other waiters
	Absent        int64     // the since of a noted waiter that did not take the name when it could
	saidExclusive bool      // this wait may have kept others from acquiring shares or permits
}

// announcedTime is for how long a noted waiter counts as waiting.
const announcedTime = 10 * time.Second

// errGone says that a name may not be held any more.
var errGone = errors.New("the name is perhaps not held any more")

// Observe updates the observations of the leases that hold the name or its permits; see observation.
func (w *Waiter) Observe(state store.State) {
	w.Holding.update(state)
	now := make(map[string]observation)
	for _, p := range state.Together() {
		s := w.others[string(p.LeaseID)]
		s.update(p)
		now[string(p.LeaseID)] = s
		if first := len(now) == 1; first && !state.Live() || s.expiry.Before(w.Holding.expiry) {
			w.Holding.expiry = s.expiry
		}
	}
	w.others = now
}

// Announce notes in the table that w waits for the name, unless a longer waiter is noted (I36). The note is advisory,
// so an error does no harm. It returns errGone if the name may have been released since it was last read: its lock row
// was free, or locked. It does not return errGone twice in a row.
func (w *Waiter) Announce(ctx context.Context) error {
	state := w.Holding.State
	if w.since == 0 {
		w.since = state.ExpiresUS - state.RemainingUS
	}
	before := state.WaiterUS != 0 && state.WaiterUS < w.since
	known := state.WaiterUS == w.since && time.Since(w.announced) < announcedTime/2
	again := w.unannounced
	w.unannounced = false
	if state.LeaseID == nil || w.since == 0 || before || known {
		return nil
	}
	noted := false
	err := dberr.Once(ctx, dberr.AttemptTimeout, func(ctx context.Context) (err error) {
		noted, err = w.Keeper.Store.NoteWaiter(ctx, w.Name, w.since, announcedTime)
		return err
	})
	if w.unannounced = err == nil && !noted; !w.unannounced {
		w.announced = time.Now()
		w.Holding.WaiterUS = w.since
	} else if !again {
		return errGone
	}
	return nil
}

// AnnouncedSince returns since when the table may say that this waiter waits, or 0.
func (w *Waiter) AnnouncedSince() int64 {
	if w.announced.IsZero() {
		return 0
	}
	return w.since
}

// Withdraw removes the note from the table. For a waiter that takes the name, the acquiring statement does that.
func (w *Waiter) Withdraw() {
	if w.AnnouncedSince() == 0 {
		return
	}
	_ = w.Keeper.Hand(func() { // if the Locker is closed, the note expires
		_ = dberr.Once(w.Keeper.Closing, dberr.AttemptTimeout, func(ctx context.Context) error {
			return w.Keeper.Store.RemoveWaiter(ctx, w.Name, w.since)
		})
	})
}

// first reports whether, according to the last state, this is the longest waiter.
func (w *Waiter) first() bool { return w.since != 0 && w.Holding.WaiterUS == w.since }

// YieldsTo reports whether, according to state, another waiter has waited longer.
func (w *Waiter) YieldsTo(state store.State) bool {
	longer := state.WaiterUS < w.since || w.since == 0 && w.Yielded
	return longer && state.WaiterUS != 0 && state.WaiterUS != w.Absent
}

// Yield returns after the longest waiter has had time to hear that the name is free, or to poll. The pause is jittered,
// so that not all of the others poll at the same moment.
func (w *Waiter) Yield(ctx context.Context) error {
	_, grace := w.Keeper.Shares()
	return backoff.Sleep(ctx, grace+rand.N(lease.YieldTime)) //nolint:gosec // jitter
}

// Longer returns the next pause. If the notifier is subscribed, a release wakes w, and polling only detects that the
// lock ended in another way. Then the pause is that of the notifier, unless w could not be announced as a waiter.
func (w *Waiter) Longer(pause time.Duration) time.Duration {
	if w.Notifier.Subscribed() && w.Holding.LeaseID != nil && !w.unannounced {
		return w.Notifier.Pause
	}
	return backoff.Longer(pause)
}

// Next reports whether w has waited longest for a name that is handed from one holder to the next, and is not notified
// of that.
func (w *Waiter) Next() bool {
	return w.Holding.changedHands && w.first() && !w.Notifier.Subscribed()
}

// Pause waits for the given time, or until the name is released. It reports whether w claims first: a release woke it,
// and it has waited longest. A waiter that was woken and has not waited longest yields to the others before Pause
// returns.
func (w *Waiter) Pause(ctx context.Context, heard <-chan int64, pause time.Duration) (first bool, err error) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case since := <-heard:
		if since >= w.since {
			return true, nil
		}
		return false, w.Yield(ctx)
	}
}

// Outlasts reports whether the holders in state hold the name beyond the deadline of the context, unless they release
// it.
func (w *Waiter) Outlasts(ctx context.Context, state store.State) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < w.Wants.Lasts(state)
}

// ExpireUnchanged ends those of the leases in the way that were not renewed for a TTL, and reports whether there were
// any (I11).
func (w *Waiter) ExpireUnchanged(ctx context.Context) (ended bool, err error) {
	in := []observation{w.Holding}
	for _, s := range w.others {
		in = append(in, s)
	}
	for _, s := range in {
		if !s.unchangedForTTL() {
			continue
		}
		ended = true
		err := dberr.RetryConflicts(ctx, func(ctx context.Context) error {
			_, err := w.Keeper.Store.ExpireUnchanged(ctx, s.LeaseID, s.Renewals)
			return err
		})
		if err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// exclusiveTime is for how long an exclusive waiter, once noted, keeps others from taking permits. While it waits, the
// note is renewed when half of that time has passed.
const exclusiveTime = 5 * time.Second

// WaitForExclusive notes an exclusive waiter, so that others take no permits and the name becomes free. The note is
// renewed now and then, by any one of the exclusive waiters. A failure to write it does not end the wait.
func (w *Waiter) WaitForExclusive(ctx context.Context) {
	if w.Wants.Permit() || len(w.others) == 0 || w.Holding.ExclusiveWaiterFor() > exclusiveTime/2 {
		return
	}
	w.saidExclusive = true
	_ = dberr.Once(ctx, dberr.AttemptTimeout, func(ctx context.Context) error {
		return w.Keeper.Store.NoteExclusiveWaiter(ctx, w.Name, exclusiveTime.Microseconds())
	})
}

// StopExclusive removes the note after this attempt gave up. Other exclusive waiters write it again.
func (w *Waiter) StopExclusive() {
	if !w.saidExclusive {
		return
	}
	_ = w.Keeper.Start(func() { // if the Locker is closed, the note expires
		_ = dberr.Once(w.Keeper.Closing, dberr.AttemptTimeout, func(ctx context.Context) error { return w.Keeper.Store.NoteExclusiveWaiter(ctx, w.Name, nil) })
	})
}
