package leasetable

import (
	"fmt"
	"math"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
)

// receiveHandoff makes a lock of a name that was handed off. It gives the name back and polls for it if the lease has
// ended or has another TTL, if the metadata is that of a waiter that has left the queue, if the caller wants a permit,
// if its context has ended, or if it came after the handoff was sent: others may have held the name with a higher token
// before it came, after a forced release (I24).
func (a *attempt) receiveHandoff(h lease.Handoff) (*lease.Held, error) {
	c := h.Claim
	suits := a.ttl == c.TTL && h.Metadata == string(a.metadata) && !a.Permit() && !a.began.After(h.Sent)
	if suits && a.ctx.Err() == nil {
		lock := lease.NewHeld(a.ctx, c.Lease, a.name, h.Token, a.head)
		lock.Grant = h.Grant
		if lock.MinHold = a.minHold; lock.MinHold != 0 && h.Fence != h.First { // the database counts it from the statement of the block
			lock.MinHold += min(time.Since(h.Sent), math.MaxInt64-lock.MinHold)
		}
		if c.Commit(lock) == nil {
			return lock, nil
		}
	}
	if err := a.declineHandoff(h); err != nil {
		return nil, err
	}
	lock, err := a.poll()
	if err == nil {
		lock.Since, lock.HasWaiter = h.Since, lock.HasWaiter || h.HasWaiter // as poll found
	}
	return lock, err
}

// declineHandoff gives back a name that was handed off. A caller whose context ends does not wait for that: it gets a
// HeldError, and the release goes on in the background (I19).
func (a *attempt) declineHandoff(h lease.Handoff) error {
	_, left, err := lease.OrLeave(a.ctx, a.Start,
		func() (none struct{}, _ error) {
			h.Claim.Abandon(a.ctx, lease.Outcome{Token: h.Token})
			return none, nil
		},
		func(struct{}, error) { a.head.Leave() })
	if a.abandoned = left; left {
		err = fmt.Errorf("%w: %w", &sqllock.HeldError{Name: a.name}, err)
	}
	return err
}
