package lease

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// changeMark is the part of the answer to a renewal that concerns the locks of the lease. If it differs from the mark
// of the last verification, something may have happened to the locks.
type changeMark struct {
	changes    int64 // counts forced releases
	connection int64 // the number of the connection: another connection may lead to another server
}

// verification finds out which locks of a lease are lost.
type verification struct {
	*Lease
	latest    changeMark // guarded by the lease's mu: that of the last renewal
	done      changeMark // guarded by the lease's mu: that of the last complete verification of all locks
	searching bool       // guarded by the lease's mu: freeForgotten is at work
	running   bool       // guarded by the lease's mu
	count     int        // guarded by the lease's mu: how many have begun, or are to begin
}

// ifChanged verifies every lock of the lease, in the background, if the mark has changed since the last
// verification (I20). That also detects what an asynchronous failover forgot (I23). A verification that fails is
// repeated after the next renewal, and one under way is repeated at its end.
func (v *verification) ifChanged(now changeMark) {
	v.mu.Lock()
	defer v.mu.Unlock()
	known := now == v.done || v.running && now == v.latest
	elsewhere := now.connection != v.latest.connection
	if v.latest = now; known {
		return
	}
	if elsewhere {
		v.retired = true                  // freeForgotten has to know every lock of the lease
		if !v.searching && !v.dedicated { // which ends with its lock
			v.searching = true
			_ = v.keeper.Start(v.freeForgotten) // a closed Locker has ended the lease
		}
	}
	v.count++
	if !v.running { // a closed Locker has ended every lock
		v.running = v.keeper.Start(v.allLocks) == nil
	}
}

func (v *verification) allLocks() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for again := v.running; again; again = v.running && v.done != v.latest { // a late answer may bring an old mark
		now, locks := v.latest, slices.Collect(maps.Keys(v.locks))
		v.mu.Unlock()
		err := v.keeper.survive(func() error { return v.locksOf(locks) })
		v.mu.Lock()
		if err == nil {
			v.done = now
		}
		v.running = err == nil
	}
	v.running = false
}

// together is how many locks one statement verifies.
const together = 500

// locksOf verifies some locks of the lease.
func (v *verification) locksOf(locks []*Held) error {
	for some := range slices.Chunk(locks, together) {
		if trusted, cause := v.trustedNow(); !trusted {
			return cmp.Or(cause, errLate)
		}
		var held map[heldKey]bool
		if err := v.soon(func(ctx context.Context) (err error) {
			held, err = v.stillHeld(ctx, some)
			return err
		}); err != nil {
			return err
		}
		for _, h := range some {
			switch only, on := h.wasOnlyOn(v.Lease); {
			case held[h.key()] && on:
			case only:
				h.lose(errTaken)
			default: // it was moved, maybe after the read
				if err := v.soon(h.check); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// stillHeld reads which of some locks the table has on this lease.
func (v *verification) stillHeld(ctx context.Context, locks []*Held) (map[heldKey]bool, error) {
	names := make([]string, len(locks))
	for i, h := range locks {
		names[i] = h.Name
	}
	states, err := v.store.StillHeld(ctx, v.ID, names)
	held := make(map[heldKey]bool, len(states))
	for _, state := range states {
		held[keyOf(state)] = true
	}
	return held, err
}

// errChanged is why a claim begins again that a verification has missed.
var errChanged = fmt.Errorf("%w: locks of its lease may have changed while the answer was under way", sqllock.ErrLost)

// soon runs a read, again if the connection breaks. A read that hangs must not keep the other locks of the lease, which is
// renewed meanwhile, from being verified for long.
func (v *verification) soon(read func(context.Context) error) error {
	return dberr.Retry(v.keeper.Closing, dberr.AttemptTimeout, read)
}
