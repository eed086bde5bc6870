package leasetable

import "context"

// news is what a renewal tells, besides that the lease lives, of what may have happened to its locks.
type news struct {
	changes    int64 // by forced releases
	connection int64 // the number of the connection: another one may be to another server
}

// reviewIfChanged looks at every lock of the term when there is news since that was last done. What
// an asynchronous failover forgot is found out that way, too. A review that fails is due again with
// the next renewal.
func (t *term) reviewIfChanged(now news) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now == t.reviewed || t.reviewing {
		return
	}
	if now.connection != t.reviewed.connection {
		t.retired = true                    // freeForgotten has to know every lock of it
		_ = t.locker.start(t.freeForgotten) // of a closed Locker the lease is ended
	}
	t.reviewing = true
	t.reviews++
	if t.locker.start(func() { t.review(now) }) != nil {
		t.reviewing = false // of a closed Locker every lock is over
	}
}

func (t *term) review(now news) {
	ctx := t.locker.closing
	t.mu.Lock()
	leases := make([]*Lease, 0, len(t.locks))
	for le := range t.locks {
		leases = append(leases, le)
	}
	t.mu.Unlock()
	done := true
	for _, le := range leases {
		if trusted, _ := t.trustedNow(); !trusted {
			break
		}
		if checkSoon(ctx, le) != nil {
			done = false
			break
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reviewing = false
	if done {
		t.reviewed = now
	}
}

// reviewLate looks at a lock that a review has missed, because the answer to its acquisition was still on
// its way.
func (t *term) reviewLate(le *Lease) {
	if checkSoon(t.locker.closing, le) != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.reviewed = news{connection: -1} // look at all of them, with the next renewal
	}
}

func checkSoon(ctx context.Context, le *Lease) error {
	return once(ctx, attemptTimeout, le.check)
}

func (t *term) reviewsBegun() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reviews
}
