package leasetable

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// maxAhead is the longest time for which a lock can be made to last without a renewal.
const maxAhead = 365 * 24 * time.Hour

func checkAhead(d, least time.Duration) error {
	if d < least || d > maxAhead {
		return fmt.Errorf("leasetable: %v is not between %v and %v", d, least, maxAhead)
	}
	return nil
}

// Extend makes sure that the lock lasts for d, from when Extend returns, without another renewal, whatever happens to
// later renewals. It is for a holder that is about to stall, or to be cut off. d is positive, and a year at most. If
// the lock is already sure to last for d, Extend does nothing. Renewals go on, and each makes the lock last for at
// least d again, until its release. A holder that dies keeps the name for that much longer, too: up to 1.4 d and some
// seconds.
//
// The lock moves to a lease of the Locker with a longer TTL; the token stays. End a guarded transaction before,
// because the move waits for it.
//
// ErrLost and ErrExpired mean that the lock is over. After any other error it lasts as before. While it is unknown
// whether the lock was moved, it ends with the lease that ends first; the outcome is found out in the background.
// Until then SetMetadata, Export and another Extend wait.
func (le *Lease) Extend(ctx context.Context, d time.Duration) error {
	err := checkAhead(d, 1)
	if err == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, dberr.ConflictTimeout, &dberr.Error{Err: dberr.ErrSlow, Transient: true})
		defer cancel()
		err = le.settled(ctx, func(ctx context.Context, _ *lease) error { return le.extend(ctx, d) })
	}
	if err != nil {
		return &sqllock.OpError{Op: "extend", Name: le.Name(), Err: err}
	}
	return nil
}

// extendRounds bounds how often extend starts again because a lease ended meanwhile, or because answers came late.
const extendRounds = 5

func (le *Lease) extend(ctx context.Context, d time.Duration) error {
	for range extendRounds {
		var err error
		ls := le.attachedTo().lease
		switch {
		case le.Context().Err() != nil:
			return context.Cause(le.Context()) //nolint:contextcheck // the lock has a context of its own
		case ls.sure() >= d:
			return nil
		case ls.ttl-ls.margin() >= roomy(d):
			err = ls.renewNow(ctx)
		default:
			err = le.moveTo(ctx, ttlFor(d), d)
		}
		if err != nil && !errors.Is(err, errMoveOn) {
			return err
		}
	}
	if le.attachedTo().lease.sure() >= d {
		return nil
	}
	return &dberr.Error{Err: dberr.ErrSlow, Transient: true}
}

// moveTo moves the lock to a lease that is sure to last for d.
func (le *Lease) moveTo(ctx context.Context, ttl, d time.Duration) (err error) {
	var n *lease
	if le.dedicated {
		n, err = le.locker.openDedicated(ctx, ttl)
	} else {
		n, err = le.locker.leaseFor(ctx, ttl)
	}
	if err != nil {
		return err
	}
	if n.sure() < d {
		if err := n.renewNow(ctx); err != nil {
			n.endClaim()
			return err
		}
	}
	return le.move(n) //nolint:contextcheck // goes on in the background
}

// roomy is d and some time for the statements.
func roomy(d time.Duration) time.Duration { return d + min(d/8, 5*time.Second) }

// ttlFor returns the TTL of leases that last for d and some time for the statements. There are only eight such TTLs
// between a number of milliseconds and its double, so that few leases serve many values of d.
func ttlFor(d time.Duration) time.Duration {
	ms := max(roomy(d)/5*6, minTTL)/time.Millisecond + 1
	step := time.Duration(1) << max(bits.Len64(uint64(ms))-4, 0)
	return (ms + step - 1) / step * step * time.Millisecond
}
