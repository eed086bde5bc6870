package lease

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Handoff is what a waiter receives when it reaches the head of the wait queue of a name.
type Handoff struct {
	Claim     *Claim // for the lease that holds the name; nil: no lock of this process holds the name
	Token     int64
	Sent      time.Time // when the handoff was sent to the database
	Since     time.Time // see Held
	HasWaiter bool      // see Held
	RetryNow  bool      // the name was not released: the caller that left the queue had a permit, or nothing
	Metadata  string    // attached by the handoff: that of the first waiter at the time
}

// mayHandOff reports whether to hand the name off to the next waiter of this process, instead of releasing it. A
// handoff is one statement, which bumps the token. If another process waits, this process hands the name off only until
// turnTime after it got the name (I25). The statement may wait for the row lock, so there is no handoff while the
// row-wait limiter is saturated.
func (h *Held) mayHandOff() bool {
	mine := !h.HasWaiter || time.Since(h.Since) < turnTime
	alone := !h.Permit && !h.Dedicated && len(h.previous) == 0 // a permit, dedicated or previous leases do not pass to a waiter
	soon := !h.Keeper.Store.Saturated()
	return mine && alone && soon && h.MinHold == 0 && h.Keeper.Queue.Waiting(h.Name) > 0
}

// handOff hands the name off to the first waiter of this process (I24). If it cannot, it releases the name and leaves
// the wait queue. The caller has replaced the lock by a claim on the lease; see beginHandoff.
func (h *Held) handOff(ctx context.Context, c *Claim) error {
	ls := c.Lease
	metadata, sent := ls.keeper.Queue.Next(h.Name), time.Now()
	token, wanted, err := h.holding(ls).handOff(ctx, metadata)
	trusted, cause := ls.trustedNow()
	if token != 0 && trusted {
		next := Handoff{Claim: c, Token: token, Sent: sent, Since: h.Since, HasWaiter: wanted || h.HasWaiter, Metadata: metadata}
		if ls.keeper.Queue.Pass(h.Name, next) {
			return nil
		}
	}
	defer c.End()
	defer h.position.head.Leave()
	freed := false
	switch {
	case token != 0:
		freed, err = c.got(token).release(ctx, 0)
	case err != nil:
		// It may be unknown whether the token was bumped. The next holder has to use another lease, since a late
		// release by lease would free its lock, too (I18).
		ls.retire()
		freed, err = c.got(h.Token).releaseByLease(ctx)
	}
	return ending{h, ls, trusted, cause}.result(freed, err)
}

// handOff bumps the token of the name and attaches metadata. It returns the new token, or 0 if the name was not held
// with the token, and whether another process waits for the name.
func (hd holding) handOff(ctx context.Context, metadata string) (next int64, wanted bool, err error) {
	err = dberr.Once(bound.WithValuesOf(hd.keeper.Closing, ctx), dberr.AttemptTimeout, func(ctx context.Context) (err error) {
		next, wanted, err = hd.store.HandOff(ctx, store.Held{Name: hd.name, Lease: hd.ID, Token: hd.token}, []byte(metadata))
		return err
	})
	return next, wanted, err
}
