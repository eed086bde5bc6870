package lease

import (
	"context"
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// orphan is a name, or a permit of a name, that a lease may hold without a lock, because an answer was lost.
type orphan struct {
	name    string
	token   int64         // of the permit; 0: the whole name
	read    *store.State  // of a permit that may still be acquired: what the statement under way compares
	minHold time.Duration // see WithHoldAtLeast
	until   time.Time     // when its minimum hold ends, at the latest
	since   time.Time     // when it was noted
	asked   bool          // guarded by the lease's mu: the database has answered to its release
	next    time.Time     // is used by reap alone: when to release it again
}

// pending reports whether the name has a minimum hold that may not be in the database yet (I22). The caller holds the
// lease's mu.
func (o *orphan) pending() bool { return !o.asked && time.Now().Before(o.until) }

// orphans are what a lease may hold without a lock. The end of the lease frees them for good.
type orphans struct {
	*Lease
	list    []*orphan // guarded by the lease's mu
	reaping bool      // guarded by the lease's mu: reap runs
}

// leave notes that the lease may hold name without a lock (I17), and retires the lease (I18). An orphan with a minimum hold
// needs the lease until the database has answered, but no longer than the minimum hold lasts.
func (os *orphans) leave(name string, keep time.Duration) {
	os.add(&orphan{name: name, minHold: keep, until: time.Now().Add(keep)})
	os.retire()
}

// leavePermit notes that the lease may have a permit without a lock. It has the permit with this token or none, so the
// lease need not be retired.
func (os *orphans) leavePermit(name string, token int64) {
	os.add(&orphan{name: name, token: token})
}

// LeaveClaim notes that the lease may have, or may still get, the permit of a name that was as in state. Until that is
// settled the lease does not ask for the same permit again, which it could not tell from the orphan.
func (os *orphans) LeaveClaim(name string, state store.State) {
	os.add(&orphan{name: name, token: state.Token + 1, read: &state})
}

func (os *orphans) add(o *orphan) {
	os.mu.Lock()
	defer os.mu.Unlock()
	o.since = time.Now()
	os.list = append(os.list, o)
	if !os.reaping {
		os.reaping = os.keeper.Start(os.reap) == nil // if the Locker is closed, the lease has ended
	}
}

// owe notes that the lease ends while a name with a minimum hold is being released. The caller holds mu.
func (os *orphans) owe(h *Held) {
	os.list = append(os.list, &orphan{name: h.Name, minHold: h.MinHold, until: time.Now().Add(h.MinHold)})
}

// Has reports whether the name, or its permit with this token if that is not 0, is an orphan (I32).
func (os *orphans) Has(name string, token int64) bool {
	os.mu.Lock()
	defer os.mu.Unlock()
	return slices.ContainsFunc(os.list, func(o *orphan) bool { return o.name == name && o.token == token })
}

// reap frees the orphans, one after the other, until there are none or the lease ends (I17). It does not use the
// connection for renewals. The statement with the lost answer may still be under way, so a name that is not held stays
// an orphan, and is looked at less and less often.
func (os *orphans) reap() {
	for pause := backoff.First; ; pause = min(2*pause, interval(os.TTL), dberr.AttemptTimeout) {
		os.mu.Lock()
		list := slices.Clone(os.list)
		os.reaping = len(list) > 0
		os.mu.Unlock()
		if len(list) == 0 {
			return
		}
		for _, o := range list {
			if time.Now().Before(o.next) {
				continue
			}
			over := false
			err := os.keeper.survive(func() (err error) {
				over, err = os.release(os.keeper.Closing, o)
				return err
			})
			if err == nil {
				os.answered(o, over)
				// A statement that is still under way after minutes may be so for longer. A lease may last for months.
				o.next = time.Now().Add(min(time.Since(o.since)/20, time.Hour))
			}
		}
		if !os.pause(pause) {
			return
		}
	}
}

// keepNames has the database keep the names whose minimum hold may not be in it yet, since the lease ends with the Locker
// (I22). It reports whether the database has answered: if not, the lease row has to stay.
func (os *orphans) keepNames(ctx context.Context, within time.Duration) (kept bool) {
	os.mu.Lock()
	list := slices.DeleteFunc(slices.Clone(os.list), func(o *orphan) bool { return !o.pending() })
	os.mu.Unlock()
	kept = true
	for _, o := range list {
		_, err := dberr.Value(ctx, dberr.Retry, within, func(ctx context.Context) (bool, error) { return os.release(ctx, o) })
		kept = kept && err == nil
	}
	return kept
}

// release frees an orphan. It reports whether that is the end of it.
func (os *orphans) release(ctx context.Context, o *orphan) (over bool, err error) {
	err = dberr.Once(ctx, dberr.AttemptTimeout, func(ctx context.Context) (err error) {
		var freed int64
		switch {
		case o.read != nil:
			err = os.SettlePermit(ctx, o.name, *o.read)
		case o.token != 0:
			_, err = os.store.ReleasePermit(ctx, o.name, os.ID, o.token)
		default:
			freed, err = os.store.ReleaseByLease(ctx, o.name, os.ID, o.minHold)
		}
		over = o.token != 0 || freed > 0
		return err
	})
	return over, err
}

// SettlePermit first bumps the token, so that a statement that is still under way takes nothing (I32). Then it frees
// the permit that the statement may have taken.
func (os *orphans) SettlePermit(ctx context.Context, name string, state store.State) error {
	if err := os.store.BumpToken(ctx, name, state); err != nil {
		return err
	}
	_, err := os.store.ReleasePermit(ctx, name, os.ID, state.Token+1)
	return err
}

// answered notes that the database has answered to the release of an orphan, and whether that is the end of it.
func (os *orphans) answered(o *orphan, over bool) {
	os.mu.Lock()
	defer os.mu.Unlock()
	o.asked = true
	if over {
		os.list = slices.DeleteFunc(os.list, func(other *orphan) bool { return other == o })
	}
	os.wakeIfRetired()
}
