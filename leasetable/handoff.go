package leasetable

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
)

// baton is what comes with the turn of a name.
type handoff struct {
	lease     *lease // holds the name, with a claim begun on it; nil: nobody here does
	token     int64
	since     time.Time // see Lease
	hasWaiter bool      // see Lease

	retryNow      bool // the name was not let go: who had the turn has only a place, or nothing
	verifications int  // that had begun when the lock before it was no longer one of the term's

	metadata string // that was attached: of whoever was first in line
}

// mayPass reports whether the name, which goroutines of this process wait for, should go from one to the next by
// one statement, which raises the token, instead of being released: as long as no other process wants it, and if the statement,
// which may wait for the row, would not have to wait for others to do so.
func (le *Lease) mayHandOff() bool {
	turnTime, _ := le.locker.shares()
	mine := !le.hasWaiter || time.Since(le.since) < turnTime
	alone := !le.permit && !le.dedicated && len(le.previous) == 0 // those in line have none of its terms
	soon := !le.locker.store.rowWaits.saturated()
	return mine && alone && soon && le.minHold == 0 && le.locker.queue.Waiting(le.Name()) > 0
}

// pass gives the name, and its turn, to the first of those who wait for it in this process, and
// otherwise frees it. The lock is none of the term's any more, which has a claim instead.
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
		// Whether the token rose, may be unknown. Who has the name next has it by another lease: a
		// statement that is still under way frees it by this one.
		ls.retire()
		freed, err = ls.releaseByLease(ctx, le.Name())
	}
	return le.released(ls, freed, err, trusted, cause)
}

// pass raises the token of a name and attaches metadata. It returns the new token, or 0 if the name was not held, and
// whether another process wants the name.
func (ls *lease) handOff(ctx context.Context, name string, token int64, metadata string) (next int64, wanted bool, err error) {
	var n int64
	err = once(bound.WithValuesOf(ls.locker.closing, ctx), attemptTimeout, func(ctx context.Context) (err error) {
		n, err = ls.store.claim(ctx, handOff, []byte(metadata), []byte(name), ls.id, token)
		return err
	})
	if err != nil { // also when there was an answer: a standby may not have the next token
		return 0, false, err
	}
	return n / 2, n%2 == 1, nil
}

// receive makes a lease of a name that was passed on. If the term has ended, or is for another TTL,
// or the metadata is that of somebody who has left the line, the name is given back and asked for anew, and so it is for a place.
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

// decline gives back a name that was passed on. A caller whose context ends does not wait for that.
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
