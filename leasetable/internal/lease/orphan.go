package lease

import (
	"context"
	"slices"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/backoff"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// orphan is a name that a lease may hold without a lock, because an answer was lost.
type orphan struct {
	name    string
	minHold time.Duration // see WithHoldAtLeast
	until   time.Time     // when its minimum hold ends, at the latest
	asked   bool          // guarded by the lease's mu: the database has answered to its release
}

// pending reports whether the name has a minimum hold that may not be in the database yet. The caller holds the lease's
// mu.
func (o *orphan) pending() bool { return !o.asked && time.Now().Before(o.until) }

// leaveOrphan notes that this lease may hold name without a lock, because an answer was lost. The lease takes no new
// locks, so that the name and the lease id together mean only the orphan. reapOrphans frees it, and the end of the
// lease frees it for good. An orphan with a minimum hold needs the lease until the database has answered, but no longer
// than the minimum hold lasts.
func (ls *Lease) leaveOrphan(name string, keep time.Duration) {
	ls.mu.Lock()
	ls.orphans = append(ls.orphans, &orphan{name: name, minHold: keep, until: time.Now().Add(keep)})
	first := !ls.reaping
	ls.reaping = true
	ls.mu.Unlock()
	ls.retire()
	if first {
		_ = ls.keeper.Start(ls.reapOrphans) // if the Locker is closed, the lease has ended
	}
}

// reapOrphans frees names that a lost answer may have left held. It does not use the connection for renewals. The
// statement with the lost answer may still be under way, so a name that is not held is checked again, until the lease
// ends.
func (ls *Lease) reapOrphans() {
	for pause := backoff.First; ; pause = min(2*pause, ls.TTL/3, dberr.AttemptTimeout) {
		ls.mu.Lock()
		orphans := slices.Clone(ls.orphans)
		ls.mu.Unlock()
		for _, o := range orphans {
			var freed int64
			err := dberr.Once(ls.keeper.Closing, dberr.AttemptTimeout, func(ctx context.Context) (err error) {
				freed, err = ls.store.ReleaseByLease(ctx, o.name, ls.ID, o.minHold)
				return err
			})
			if err == nil {
				ls.found(o, freed > 0)
			}
		}
		if !ls.pause(pause) {
			return
		}
	}
}

// isOrphan reports whether name is an orphan of the lease.
func (ls *Lease) isOrphan(name string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.ContainsFunc(ls.orphans, func(o *orphan) bool { return o.name == name })
}

// found notes that the database has answered to the release of an orphan, and whether the name was held.
func (ls *Lease) found(o *orphan, held bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	o.asked = true
	if held {
		ls.orphans = slices.DeleteFunc(ls.orphans, func(other *orphan) bool { return other == o })
	}
	ls.wakeIfRetired()
}
