package leasetable

import (
	"context"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// changeMark is the part of the answer to a renewal that concerns the locks of the lease. If it differs from the mark
// of the last verification, something may have happened to the locks.
type changeMark struct {
	changes    int64 // counts forced releases
	connection int64 // the number of the connection: another connection may lead to another server
}

// verifyIfChanged verifies every lock of the lease, in the background, if the mark has changed since the last
// verification. That also detects what an asynchronous failover forgot. A verification that fails is repeated after the
// next renewal.
func (ls *lease) verifyIfChanged(now changeMark) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if now == ls.verified || ls.verifying {
		return
	}
	if now.connection != ls.verified.connection {
		ls.retired = true                     // freeForgotten has to know every lock of the lease
		_ = ls.locker.start(ls.freeForgotten) // a closed Locker has ended the lease
	}
	ls.verifying = true
	ls.verifications++
	if ls.locker.start(func() { ls.verifyLocks(now) }) != nil {
		ls.verifying = false // a closed Locker has ended every lock
	}
}

func (ls *lease) verifyLocks(now changeMark) {
	ctx := ls.locker.closing
	ls.mu.Lock()
	leases := make([]*Lease, 0, len(ls.locks))
	for le := range ls.locks {
		leases = append(leases, le)
	}
	ls.mu.Unlock()
	done := true
	for _, le := range leases {
		if trusted, _ := ls.trustedNow(); !trusted {
			break
		}
		if checkSoon(ctx, le) != nil {
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

// verifyMissed verifies a lock that a verification has missed, because the answer to its acquisition was still on its
// way.
func (ls *lease) verifyMissed(le *Lease) {
	if checkSoon(ls.locker.closing, le) != nil {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		ls.verified = changeMark{connection: -1} // verify all locks after the next renewal
	}
}

func checkSoon(ctx context.Context, le *Lease) error {
	return dberr.Once(ctx, dberr.AttemptTimeout, le.check)
}

func (ls *lease) verificationsBegun() int {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.verifications
}
