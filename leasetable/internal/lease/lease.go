package lease

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// MinTTL leaves time for some round trips to a renewal, which is due after a third of the TTL.
const MinTTL = 200 * time.Millisecond

// Lease is one lease row of this Locker and the locks that are attached to it. The goroutine renewals.loop renews it until
// it ends. A timer ends it at its deadline, whatever that goroutine is doing.
type Lease struct {
	keeper *Keeper
	store  *store.Batched
	ID     []byte
	TTL    time.Duration
	wake   chan struct{} // makes renewals.loop check whether the lease can end
	ended  chan struct{} // closed when the lease has ended and the context of every lock is cancelled

	dedicated bool // it is for one name, and ends with the lock

	mu       sync.Mutex
	trusted  time.Time          // guarded by mu: the database is sure to keep the lease until then
	deadline *clock.Timer       // guarded by mu: ends the lease at trusted
	warning  *time.Timer        // guarded by mu: warns some time before
	locks    map[*Held]struct{} // guarded by mu: the locks that are held
	permits  map[heldKey]*Held  // guarded by mu: those of them that are shares or permits
	claims   int                // guarded by mu: claims under way
	retired  bool               // guarded by mu: takes no new claims
	used     time.Time          // guarded by mu: when a claim last began or a lock last ended
	cause    error              // guarded by mu: why the lease ended

	Orphans      orphans      // what a lost answer may have left held
	verification verification // of the locks, after others may have changed something
	Renewals     renewals     // of the row
}

// beginClaim begins a claim, and reports whether it did. A lease that is over or retired takes no claims (I4). A claim
// keeps the lease from ending unused.
func (ls *Lease) beginClaim() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.retired || ls.over() != nil {
		return false
	}
	ls.claims++
	ls.used = time.Now()
	return true
}

// endClaim ends a claim that took no lock.
func (ls *Lease) endClaim() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.claims--
	ls.wakeIfRetired()
}

// attach ends a claim that took a lock, and adds the lock to the lease. If the lease is over, attach returns why, and
// the claim goes on until the lock is released (I4, I24). So it is if more verifications have begun than before the claim:
// one has missed the lock, which others with higher tokens may have followed (I12).
func (ls *Lease) attach(h *Held, verifications int) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if err := ls.over(); err != nil {
		return err
	}
	if ls.verification.count != verifications {
		return errChanged
	}
	ls.claims--
	ls.locks[h] = struct{}{}
	if h.Permit {
		ls.permits[h.key()] = h
	}
	return nil
}

// Join adds a lock that is still attached to another lease, too; see settled.move (I27). The claim goes on. It returns
// errMoveOn if the lease is over (I4).
func (ls *Lease) Join(h *Held) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.over() != nil {
		return errMoveOn
	}
	ls.locks[h] = struct{}{}
	return nil
}

// loseForgotten ends a share or permit that has the name and the token of h, which was granted now: a failover has forgotten
// the other one, and a read would take the row of h for its row (I20).
func (ls *Lease) loseForgotten(h *Held) {
	ls.mu.Lock()
	forgotten := ls.permits[h.key()]
	ls.mu.Unlock()
	if forgotten != nil {
		forgotten.lose(errTaken)
	}
}

// remove removes a lock. The caller holds mu.
func (ls *Lease) remove(h *Held) {
	delete(ls.locks, h)
	if ls.permits[h.key()] == h {
		delete(ls.permits, h.key())
	}
}

// beginHandoff replaces a lock that is to be handed off by a claim. It returns nil if the lock was not there. A retired
// lease hands nothing off (I18).
func (ls *Lease) beginHandoff(h *Held) *Claim {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if _, held := ls.locks[h]; !held || ls.retired { // the name would be freed as an orphan, or as forgotten
		return nil
	}
	ls.remove(h)
	ls.claims++
	return &Claim{Lease: ls, Name: h.Name, verifications: ls.verification.count}
}

// detach removes a lock that was released, moved or lost, and reports whether it was there.
func (ls *Lease) detach(h *Held) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	_, held := ls.locks[h]
	ls.remove(h)
	ls.used = time.Now()
	ls.wakeIfRetired()
	return held
}

// retire makes the lease take no new claims, and end when it has no locks (I17).
func (ls *Lease) retire() {
	ls.mu.Lock()
	ls.retired = true
	ls.wakeIfRetired()
	ls.mu.Unlock()
	ls.keeper.forget(ls, false)
}

// wakeIfRetired makes renewals.loop check whether the lease can end, if it is retired, or if the server has no connection
// left for others. The caller holds mu.
func (ls *Lease) wakeIfRetired() {
	if ls.retired || ls.store.Limited() {
		select {
		case ls.wake <- struct{}{}:
		default:
		}
	}
}

// pause waits for about the given time. It reports false, at once, when the lease ends.
func (ls *Lease) pause(pause time.Duration) bool {
	timer := time.NewTimer(jitter.Around(pause))
	defer timer.Stop()
	select {
	case <-ls.ended: // and with it everything that it held
		return false
	case <-timer.C:
		return true
	}
}

// held returns the locks that the lease holds.
func (ls *Lease) held() []*Held {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.Collect(maps.Keys(ls.locks))
}
