package lease

import (
	"context"
	"errors"
	"math/bits"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// extendRounds bounds how often extend starts again because a lease ended meanwhile, or because answers came late.
const extendRounds = 5

// Extend makes sure that the lock lasts for d without another renewal.
func (h *Held) Extend(ctx context.Context, d time.Duration) error {
	return h.whenSettled(ctx, func(ctx context.Context, h settled) error { return h.extend(ctx, d) })
}

// extend renews the lease, or moves the lock to another one, until one is sure to last for d.
func (h settled) extend(ctx context.Context, d time.Duration) error {
	for range extendRounds {
		var err error
		ls, over := h.AttachedTo().Lease, h.over() //nolint:contextcheck // the lock has a context of its own
		switch {
		case over != nil || ls.sure() >= d:
			return over
		case ls.TTL-ls.margin() >= roomy(d):
			err = ls.Renewals.Now(ctx)
		default:
			err = h.moveTo(ctx, d)
		}
		if err != nil && !errors.Is(err, errMoveOn) {
			return err
		}
	}
	if h.AttachedTo().Lease.sure() >= d {
		return nil
	}
	return &dberr.Error{Err: dberr.ErrSlow, Transient: true}
}

// moveTo moves the lock to a lease that is sure to last for d. The row of that lease is committed before (I7).
func (h settled) moveTo(ctx context.Context, d time.Duration) error {
	n, err := h.Keeper.leaseFor(ctx, ttlFor(d), h.isDedicated())
	if err != nil {
		return err
	}
	if n.sure() < d {
		if err := n.Renewals.Now(ctx); err != nil {
			n.endClaim()
			return err
		}
	}
	return h.move(n) //nolint:contextcheck // goes on in the background
}

// roomy is d and some time for the statements.
func roomy(d time.Duration) time.Duration { return d + min(d/8, 5*time.Second) }

// ttlFor returns the TTL of leases that last for d and some time for the statements (I26). There are only eight such
// TTLs between a number of milliseconds and its double, so that few leases serve many values of d.
func ttlFor(d time.Duration) time.Duration {
	ms := max(roomy(d)/5*6, MinTTL)/time.Millisecond + 1
	step := time.Duration(1) << max(bits.Len64(uint64(ms))-4, 0)
	return (ms + step - 1) / step * step * time.Millisecond
}
