package leasetable

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// handoff is what a waiter receives when it reaches the head of the wait queue of a name.
type handoff struct {
	lease     *lease // holds the name, and a claim has begun on it; nil: no lock of this process holds the name
	token     int64
	since     time.Time // see Lease
	hasWaiter bool      // see Lease

	retryNow      bool // the name was not released: the caller that left the queue had a permit, or nothing
	verifications int  // how many had begun when the previous lock was removed from the lease

	metadata string // attached by the handoff: that of the first waiter at the time
}

// mayHandOff reports whether to hand the name off to the next waiter of this process, instead of releasing it. A
// handoff is one statement, which bumps the token. If another process waits, this process hands the name off only until
// turnTime after it got the name. The statement may wait for the row lock, so there is no handoff while the row-wait
// limiter is saturated.
func (le *Lease) mayHandOff() bool {
	turnTime, _ := le.locker.shares()
	mine := !le.hasWaiter || time.Since(le.since) < turnTime
	alone := !le.permit && !le.dedicated && len(le.previous) == 0 // a permit, dedicated or previous leases do not pass to a waiter
	soon := !le.locker.store.RowWaits.Saturated()
	return mine && alone && soon && le.minHold == 0 && le.locker.queue.Waiting(le.Name()) > 0
}

// HandOff hands the name off to the first waiter of this process. If it cannot, it releases the name and leaves the
// wait queue. The caller has replaced the lock by a claim on the lease; see beginHandoff.
func (le *Lease) handOff(ctx context.Context, ls *lease, reviews int) error {
	metadata := ls.locker.queue.Next(le.Name())
	token, wanted, err := ls.handOff(ctx, le.Name(), le.token, metadata)
	trusted, cause := ls.trustedNow()
	if token != 0 && trusted {
		h := handoff{lease: ls, token: token, since: le.since, hasWaiter: wanted, verifications: reviews, metadata: metadata}
		if ls.locker.queue.Pass(le.Name(), h) {
			return nil
		}
	}
	defer ls.endClaim()
	defer le.leaveQueue()
	freed := false
	switch {
	case token != 0:
		freed, err = ls.release(ctx, le.Name(), token, 0)
	case err != nil:
		// It may be unknown whether the token was bumped. The next holder has to use another lease, since a late
		// release by lease would free its lock, too.
		ls.retire()
		freed, err = ls.releaseByLease(ctx, le.Name())
	}
	return le.released(ls, freed, err, trusted, cause)
}

// HandOff bumps the token of a name and attaches metadata. It returns the new token, or 0 if the name was not held with
// the token, and whether another process waits for the name.
func (ls *lease) handOff(ctx context.Context, name string, token int64, metadata string) (next int64, wanted bool, err error) {
	err = dberr.Once(bound.WithValuesOf(ls.locker.closing, ctx), dberr.AttemptTimeout, func(ctx context.Context) (err error) {
		next, wanted, err = ls.store.HandOff(ctx, store.Held{Name: name, Lease: ls.id, Token: token}, []byte(metadata))
		return err
	})
	return next, wanted, err
}

// receiveHandoff makes a Lease of a name that was handed off. It gives the name back and polls for it if the lease has
// ended or has another TTL, if the metadata is that of a waiter that has left the queue, if the caller wants a permit,
// or if its context has ended.
func (a *attempt) receiveHandoff(h handoff) (*Lease, error) {
	if a.choice.ttl == h.lease.ttl && h.metadata == string(a.metadata) && !a.permit() && a.ctx.Err() == nil {
		lease := newLease(a.ctx, h.lease, a.name, h.token, a.leaveQueue)
		lease.minHold, lease.since, lease.hasWaiter = a.minHold, h.since, h.hasWaiter
		if h.lease.attach(lease, h.verifications) == nil {
			return lease, nil
		}
	}
	if err := a.declineHandoff(h); err != nil {
		return nil, err
	}
	lease, err := a.poll()
	if err == nil {
		lease.since, lease.hasWaiter = h.since, h.hasWaiter
	}
	return lease, err
}

// declineHandoff gives back a name that was handed off. A caller whose context ends does not wait for that: it gets a
// HeldError, and the release goes on in the background.
func (a *attempt) declineHandoff(h handoff) error {
	var err error
	_, a.abandoned, err = orLeave(a.ctx, a.start,
		func() (nothing struct{}) {
			a.abandon(h.lease, outcome{token: h.token})
			return nothing
		},
		func(struct{}) { a.leaveQueue() })
	if a.abandoned {
		return fmt.Errorf("%w: %w", &sqllock.HeldError{Name: a.name}, context.Cause(a.ctx))
	}
	return err // the Locker is closed, which ends the lease
}
