package leasetable

import (
	"context"
	"slices"
	"time"
)

// stray is a name that may be held though nobody knows.
type stray struct {
	name  string
	keep  time.Duration // see WithHoldAtLeast
	until time.Time     // when it is kept no more, at the latest
	asked bool          // guarded by the term's mu: the database has answered to its release
}

// pending reports whether the name is to be kept, and may not be yet. The caller has the term's mu.
func (s *stray) pending() bool { return !s.asked && time.Now().Before(s.until) }

// leaveStray notes that name may be held by this lease though nobody knows: an answer was lost.
// The lease takes no new locks, so that the name and the lease id together mean only the stray;
// chaseStrays releases it, and the end of the lease does so for good. A name that is to be kept after that needs the
// lease until the database has answered, but no longer than it is to be kept.
func (t *term) leaveStray(name string, keep time.Duration) {
	t.mu.Lock()
	t.strays = append(t.strays, &stray{name: name, keep: keep, until: time.Now().Add(keep)})
	first := !t.chasing
	t.chasing = true
	t.mu.Unlock()
	t.retire()
	if first {
		_ = t.locker.start(t.chaseStrays) // of a closed Locker the lease is ended
	}
}

// chaseStrays frees names that a lost answer may have left held, on a connection that renewals do
// not need. The statement with the lost answer may still be under way, so a name that is not
// held is looked at again, until the term ends.
func (t *term) chaseStrays() {
	for pause := firstPause; ; pause = min(2*pause, t.ttl/3, attemptTimeout) {
		t.mu.Lock()
		strays := slices.Clone(t.strays)
		t.mu.Unlock()
		for _, s := range strays {
			var freed int64
			err := once(t.locker.closing, attemptTimeout, func(ctx context.Context) (err error) {
				freed, err = t.store.disown(ctx, s.name, t.id, s.keep)
				return err
			})
			if err == nil {
				t.found(s, freed > 0)
			}
		}
		if !t.rest(pause) {
			return
		}
	}
}

// isStray reports whether name is one of the strays.
func (t *term) isStray(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.strays, func(s *stray) bool { return s.name == name })
}

// found notes that the database was asked to release a stray, and whether it was held.
func (t *term) found(s *stray, held bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.asked = true
	if held {
		t.strays = slices.DeleteFunc(t.strays, func(other *stray) bool { return other == s })
	}
	t.nudgeIfRetired()
}
