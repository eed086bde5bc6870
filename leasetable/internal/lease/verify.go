package lease

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// changeMark is the part of the answer to a renewal that concerns the locks of the lease. If it differs from the mark
// of the last verification, something may have happened to the locks.
type changeMark struct {
	changes    int64 // counts forced releases
	connection int64 // the number of the connection: another connection may lead to another server
}

// verifyIfChanged verifies every lock of the lease, in the background, if the mark has changed since the last
// verification (I20). That also detects what an asynchronous failover forgot (I23). A verification that fails is
// repeated after the next renewal.
func (ls *Lease) verifyIfChanged(now changeMark) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if now == ls.verified || ls.verifying {
		return
	}
	if now.connection != ls.verified.connection {
		ls.retired = true                     // freeForgotten has to know every lock of the lease
		_ = ls.keeper.Start(ls.freeForgotten) // a closed Locker has ended the lease
	}
	ls.verifying = true
	ls.verifications++
	if ls.keeper.Start(func() { ls.verifyLocks(now) }) != nil {
		ls.verifying = false // a closed Locker has ended every lock
	}
}

func (ls *Lease) verifyLocks(now changeMark) {
	ctx := ls.keeper.Closing
	ls.mu.Lock()
	leases := make([]*Held, 0, len(ls.locks))
	for h := range ls.locks {
		leases = append(leases, h)
	}
	ls.mu.Unlock()
	done := true
	for _, h := range leases {
		if trusted, _ := ls.trustedNow(); !trusted {
			break
		}
		if checkSoon(ctx, h) != nil {
			done = false
			break
		}
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.verifying = false
	if done {
		ls.verified = now
	}
}

// errChanged is why a claim begins again that a verification has missed.
var errChanged = fmt.Errorf("%w: locks of its lease may have changed while the answer was under way", sqllock.ErrLost)

func checkSoon(ctx context.Context, h *Held) error {
	return dberr.Once(ctx, dberr.AttemptTimeout, h.check)
}

func (ls *Lease) verificationsBegun() int {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.verifications
}
