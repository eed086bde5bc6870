package leasetable

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// maxAhead is the longest time for which a lock can be made to last without a renewal.
const maxAhead = 365 * 24 * time.Hour

func checkAhead(d, least time.Duration) error {
	if d < least || d > maxAhead {
		return fmt.Errorf("the time %v is out of range; it must be from %v to %v", d, least, maxAhead)
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
		err = le.held.Extend(ctx, d)
	}
	return le.failed("extend", err)
}
