package leasetable

import (
	"context"
	"slices"
	"time"
)

// stray is a name that may be held though nobody knows.
type orphan struct {
	name    string
	minHold time.Duration // see WithHoldAtLeast
	until   time.Time     // when it is kept no more, at the latest
	asked   bool          // guarded by the term's mu: the database has answered to its release
}

// pending reports whether the name is to be kept, and may not be yet. The caller has the term's mu.
func (o *orphan) pending() bool { return !o.asked && time.Now().Before(o.until) }

// leaveStray notes that name may be held by this lease though nobody knows: an answer was lost.
// The lease takes no new locks, so that the name and the lease id together mean only the stray;
// chaseStrays releases it, and the end of the lease does so for good. A name that is to be kept after that needs the
// lease until the database has answered, but no longer than it is to be kept.
func (ls *lease) leaveOrphan(name string, keep time.Duration) {
	ls.mu.Lock()
	ls.orphans = append(ls.orphans, &orphan{name: name, minHold: keep, until: time.Now().Add(keep)})
	first := !ls.reaping
	ls.reaping = true
	ls.mu.Unlock()
	ls.retire()
	if first {
		_ = ls.locker.start(ls.reapOrphans) // of a closed Locker the lease is ended
	}
}

// chaseStrays frees names that a lost answer may have left held, on a connection that renewals do
// not need. The statement with the lost answer may still be under way, so a name that is not
// held is looked at again, until the term ends.
func (ls *lease) reapOrphans() {
	for pause := firstPause; ; pause = min(2*pause, ls.ttl/3, attemptTimeout) {
		ls.mu.Lock()
		orphans := slices.Clone(ls.orphans)
		ls.mu.Unlock()
		for _, o := range orphans {
			var freed int64
			err := once(ls.locker.closing, attemptTimeout, func(ctx context.Context) (err error) {
				freed, err = ls.store.releaseByLease(ctx, o.name, ls.id, o.minHold)
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

// isStray reports whether name is one of the strays.
func (ls *lease) isOrphan(name string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.ContainsFunc(ls.orphans, func(o *orphan) bool { return o.name == name })
}

// found notes that the database was asked to release a stray, and whether it was held.
func (ls *lease) found(o *orphan, held bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	o.asked = true
	if held {
		ls.orphans = slices.DeleteFunc(ls.orphans, func(other *orphan) bool { return other == o })
	}
	ls.wakeIfRetired()
}
