package leasetable

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
)

// Lease is a lock of this package.
type Lease struct{ held *lease.Held }

var _ sqllock.Lock = (*Lease)(nil)

// Name implements sqllock.Lock.
func (le *Lease) Name() string { return le.held.Hold.Name() }

// Context implements sqllock.Lock. It is cancelled when the lock ends, for any reason. context.Cause then matches
// sqllock.ErrReleased, ErrLost or ErrExpired, or sqllock.ErrClosed if the Locker was closed.
func (le *Lease) Context() context.Context { return le.held.Hold.Context() }

// Release implements sqllock.Lock. It frees the name, or hands it off to the next goroutine of this Locker that waits
// for it.
//
// It returns nil if the lock was held until now, and sqllock.ErrExpired if its deadline had passed but nobody had taken
// the name; where the error says that the lock ended before its release was confirmed, somebody may have. It returns
// sqllock.ErrLost if somebody had taken it, or its row in the table of leases is gone, and sqllock.ErrClosed if the
// Locker is closed. Any other error means that the database did not confirm within about 8 s. The release is then retried
// in the background. The name is free at the latest when the lease ends, which is renewed as long as other locks of the
// Locker are on it, and until a minimum hold ([WithHoldAtLeast]) has passed.
//
// While goroutines hand the name on quickly, the database is asked every 25 ms, and not by each Release. If the name was
// released by force meanwhile, or a failover has forgotten it, Release returns nil, and the goroutine that has the name at
// the next renewal is told. Release may also return nil then if the answer to its statement was lost.
func (le *Lease) Release(ctx context.Context) error { return le.held.Hold.Release(ctx) }

// Token returns the fencing token. It is higher than that of every earlier acquisition of the name that the database has
// not forgotten; see Failover in docs/operations.md.
func (le *Lease) Token() int64 { return le.held.Fence }

// Remaining returns how long the lock is sure to last without another renewal, or 0 when it is over. The next renewal
// comes within a third of the TTL.
func (le *Lease) Remaining() time.Duration {
	if le.Context().Err() != nil {
		return 0
	}
	return le.held.Sure()
}

// Renew renews the lease now, and with it the other locks on it: most of the Locker's that have the same TTL. The lock
// then lasts for 5/6 of its TTL, even if later renewals fail. Callers that come while a renewal is under way share the
// next one. ErrLost and ErrExpired mean that the lock is over. After any other error nothing has changed, and renewals go
// on. A renewal that finds a forced release has the locks verified in the background, so it may return nil and the
// Context end a moment later: [Lease.Verify] waits for the answer.
func (le *Lease) Renew(ctx context.Context) error {
	return le.failed("renew", le.held.Renew(ctx))
}

// failed says which operation err is of, if there is one.
func (le *Lease) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &sqllock.OpError{Op: op, Name: le.Name(), Err: err}
}
