package wait

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
	"github.com/sqllock/sqllock/leasetable/internal/permit"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Waiter is one wait for a name that another process holds: what was last read of the name, and when to look again. The
// waiter that has waited longest is noted in the table, for people and so that the holder knows.
type Waiter struct {
	Keeper  *lease.Keeper
	Turns   *Turns
	Stalled *Stalled
	Name    string
	Wants   permit.Wants
	Began   time.Time

	Holding observation            // the state of the name when it was last read as held
	others  map[string]observation // the leases that have shares or permits of the name, by id

	since         int64     // since when it waits, by the database's clock, in microseconds since 1970
	announced     time.Time // when since was last written to the table
	unannounced   bool      // since could not be written
	Yielded       bool      // this process had the name just now, and others wait for it
	saidExclusive bool      // this wait may have kept others from acquiring shares or permits
}

// announcedTime is for how long a noted waiter counts as waiting; in a long wait, whose pauses are longer, twice as long.
const announcedTime = 10 * time.Second

// errGone says that a name may not be held any more.
var errGone = errors.New("the name is perhaps not held any more")

// Observe updates the observations of the leases that hold the name or its permits; see observation.
func (w *Waiter) Observe(state store.State) {
	w.Holding.update(state, w.Stalled)
	now := make(map[string]observation)
	for _, p := range state.Together() {
		s := w.others[string(p.LeaseID)]
		s.update(p, w.Stalled)
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
	within := announcedTime
	if time.Since(w.Began) > longTime {
		within *= 2
	}
	before := state.WaiterUS != 0 && state.WaiterUS < w.since
	known := state.WaiterUS == w.since && time.Since(w.announced) < within/10 // a pause fits into the rest
	again := w.unannounced
	w.unannounced = false
	if state.LeaseID == nil || w.since == 0 || before || known {
		return nil
	}
	noted, err := dberr.Value(ctx, dberr.Once, dberr.AttemptTimeout, func(ctx context.Context) (bool, error) {
		return w.Keeper.Store.NoteWaiter(ctx, w.Name, w.since, within)
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

// Longer returns the next pause between two looks at the row. The looks of the head, who is alone, add a fiftieth to
// the time that it has waited, and those of others to the time for which the name has not changed hands: so who comes later
// looks more often for the first two seconds only.
func (w *Waiter) Longer(pause time.Duration) time.Duration {
	if !w.Turns.Ours(w.Name) {
		same := time.Duration(0)
		if !w.Holding.changed.IsZero() {
			same = time.Since(w.Holding.changed)
		}
		return max(backoff.Longer(pause), min(same/50, time.Since(w.Began)/4, backoff.Rarest))
	}
	return min(2*pause, max(time.Since(w.Began)/50, backoff.First), backoff.Rarest)
}

// Pause waits for its turn or, as the head and where there are no turns, for the given time. It reports whether the turn
// has just come. A lease that ends meanwhile ends the pause, and so do two slices or a long one, and a queue that does not
// answer. Where shares or permits are in the way of an exclusive waiter, one slice does: then its note is renewed.
//
// A pause is shorter than conn.WorkIdleTime: else each look at the row would need a new connection.
func (w *Waiter) Pause(ctx context.Context, pause time.Duration) (came bool, err error) {
	if w.Turns.Keep(w.Name) { //nolint:contextcheck // a ping outlives its caller
		return false, backoff.Sleep(ctx, w.Holding.UntilExpiry(pause))
	}
	slices, length := 2, slice
	switch {
	case !w.Wants.Permit() && len(w.others) > 0:
		slices = 1
	case time.Since(w.Began) > longTime && w.Turns.mayBeLong():
		slices, length = 1, longSlice
	}
	for range slices {
		came, err := w.stand(ctx, length)
		switch {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case errors.Is(err, errNoTurn):
			return false, backoff.Sleep(ctx, w.Holding.UntilExpiry(pause))
		case came || err != nil:
			return came, nil //nolint:nilerr // a queue that does not answer: the waiter looks at the row
		case w.Holding.endsWithin(slice):
			return false, nil
		}
	}
	return false, nil
}

// stand stands in the server's queue for a slice of about this length: the ends of slices are spread.
func (w *Waiter) stand(ctx context.Context, length time.Duration) (came bool, err error) {
	if w.Holding.endsWithin(time.Second) && w.Holding.mayExpire() { // the shortest wait of MySQL
		return false, errNoTurn
	}
	d := w.Holding.UntilExpiry(length*3/4 + jitter.Below(length/2))
	return w.Turns.Stand(ctx, w.Name, max(d, time.Second))
}

// StandFirst stands in the server's queue before it looks at the row, if this process had the name just now and others wait
// for it. It reports whether its turn has come.
func (w *Waiter) StandFirst(ctx context.Context) (came bool) {
	if !w.Yielded {
		return false
	}
	came, _ = w.Turns.Stand(ctx, w.Name, slice) // what is wrong shows when the row is read
	return came
}

// Outlasts reports whether the holders in state hold the name beyond the deadline of the context, unless they release
// it.
func (w *Waiter) Outlasts(ctx context.Context, state store.State) bool {
	deadline, ok := ctx.Deadline()
	state.RemainingUS = w.Holding.leftUS(state)
	state.Permits = state.Together()
	for i, p := range state.Permits {
		s := w.others[string(p.LeaseID)]
		state.Permits[i].RemainingUS = s.leftUS(p)
	}
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
		_, err := dberr.Value(ctx, dberr.RetryConflicts, dberr.ConflictTimeout, func(ctx context.Context) (bool, error) {
			return w.Keeper.Store.ExpireUnchanged(ctx, s.LeaseID, s.Renewals)
		})
		if err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// WaitForExclusive notes an exclusive waiter, so that others take no permits and the name becomes free. The note is
// renewed when a quarter of its time has passed, by any one of the exclusive waiters: the rest is for a slice and a late
// answer. A failure to write it does not end the wait.
func (w *Waiter) WaitForExclusive(ctx context.Context) {
	if w.Wants.Permit() || len(w.others) == 0 || w.Holding.ExclusiveWaiterFor() > store.ExclusiveTime*3/4 {
		return
	}
	w.saidExclusive = true
	_ = dberr.Once(ctx, dberr.AttemptTimeout, func(ctx context.Context) error {
		return w.Keeper.Store.NoteExclusiveWaiter(ctx, w.Name, store.ExclusiveTime.Microseconds())
	})
}

// StopExclusive removes the note after this attempt gave up. Other exclusive waiters write it again. It waits for the
// answer for a moment: otherwise the note would be in the way of the same caller, who may try for a share now.
func (w *Waiter) StopExclusive() {
	if !w.saidExclusive {
		return
	}
	soon, cancel := context.WithTimeout(w.Keeper.Closing, lease.LingerTime)
	defer cancel()
	_, _, _ = lease.OrLeave(soon, w.Keeper.Start, // if it fails the note expires
		func() (none struct{}, _ error) {
			return none, dberr.Once(w.Keeper.Closing, dberr.AttemptTimeout, func(ctx context.Context) error {
				return w.Keeper.Store.NoteExclusiveWaiter(ctx, w.Name, nil)
			})
		}, nil)
}
