package leasetable

import "context"

// news is what a renewal tells, besides that the lease lives, of what may have happened to its locks.
type changeMark struct {
	changes    int64 // by forced releases
	connection int64 // the number of the connection: another one may be to another server
}

// reviewIfChanged looks at every lock of the term when there is news since that was last done. What
// an asynchronous failover forgot is found out that way, too. A review that fails is due again with
// the next renewal.
func (ls *lease) verifyIfChanged(now changeMark) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if now == ls.verified || ls.verifying {
		return
	}
	if now.connection != ls.verified.connection {
		ls.retired = true                     // freeForgotten has to know every lock of it
		_ = ls.locker.start(ls.freeForgotten) // of a closed Locker the lease is ended
	}
	ls.verifying = true
	ls.verifications++
	if ls.locker.start(func() { ls.verifyLocks(now) }) != nil {
		ls.verifying = false // of a closed Locker every lock is over
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

// reviewLate looks at a lock that a review has missed, because the answer to its acquisition was still on
// its way.
func (ls *lease) verifyMissed(le *Lease) {
	if checkSoon(ls.locker.closing, le) != nil {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		ls.verified = changeMark{connection: -1} // look at all of them, with the next renewal
	}
}

func checkSoon(ctx context.Context, le *Lease) error {
	return once(ctx, attemptTimeout, le.check)
}

func (ls *lease) verificationsBegun() int {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.verifications
}
