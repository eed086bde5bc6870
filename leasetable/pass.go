package leasetable

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
)

// baton is what comes with the turn of a name.
type baton struct {
	term   *term // holds the name, with a claim begun on it; nil: nobody here does
	token  int64
	since  time.Time // see Lease
	wanted bool      // see Lease

	soon    bool // the name was not let go: who had the turn has only a place, or nothing
	reviews int  // that had begun when the lock before it was no longer one of the term's

	metadata string // that was attached: of whoever was first in line
}

// mayPass reports whether the name, which goroutines of this process wait for, should go from one to the next by
// one statement, which raises the token, instead of being released: as long as no other process wants it, and if the statement,
// which may wait for the row, would not have to wait for others to do so.
func (le *Lease) mayPass() bool {
	turnTime, _ := le.locker.shares()
	mine := !le.wanted || time.Since(le.since) < turnTime
	alone := !le.place && !le.apart && len(le.was) == 0 // those in line have none of its terms
	soon := !le.locker.store.patience.full()
	return mine && alone && soon && le.keep == 0 && le.locker.turns.Waiting(le.Name()) > 0
}

// pass gives the name, and its turn, to the first of those who wait for it in this process, and
// otherwise frees it. The lock is none of the term's any more, which has a claim instead.
func (le *Lease) pass(ctx context.Context, t *term, reviews int) error {
	metadata := t.locker.turns.Next(le.Name())
	token, wanted, err := t.pass(ctx, le.Name(), le.token, metadata)
	trusted, cause := t.trustedNow()
	if token != 0 && trusted {
		b := baton{term: t, token: token, since: le.since, wanted: wanted, reviews: reviews, metadata: metadata}
		if t.locker.turns.Pass(le.Name(), b) {
			return nil
		}
	}
	defer t.endClaim()
	defer le.over()
	freed := false
	switch {
	case token != 0:
		freed, err = t.release(ctx, le.Name(), token, 0)
	case err != nil:
		// Whether the token rose, may be unknown. Who has the name next has it by another lease: a
		// statement that is still under way frees it by this one.
		t.retire()
		freed, err = t.disown(ctx, le.Name())
	}
	return le.released(t, freed, err, trusted, cause)
}

// pass raises the token of a name and attaches metadata. It returns the new token, or 0 if the name was not held, and
// whether another process wants the name.
func (t *term) pass(ctx context.Context, name string, token int64, metadata string) (next int64, wanted bool, err error) {
	var n int64
	err = once(bound.To(t.locker.closing, ctx), attemptTimeout, func(ctx context.Context) (err error) {
		n, err = t.store.claim(ctx, pass, []byte(metadata), []byte(name), t.id, token)
		return err
	})
	if err != nil { // also when there was an answer: a standby may not have the next token
		return 0, false, err
	}
	return n / 2, n%2 == 1, nil
}

// receive makes a lease of a name that was passed on. If the term has ended, or is for another TTL,
// or the metadata is that of somebody who has left the line, the name is given back and asked for anew, and so it is for a place.
func (a *attempt) receive(b baton) (*Lease, error) {
	if a.choice.ttl == b.term.ttl && b.metadata == string(a.metadata) && !a.place() && a.ctx.Err() == nil {
		lease := newLease(a.ctx, b.term, a.name, b.token, a.over)
		lease.keep, lease.since, lease.wanted = a.keep, b.since, b.wanted
		if b.term.attach(lease, b.reviews) == nil {
			return lease, nil
		}
	}
	if err := a.decline(b); err != nil {
		return nil, err
	}
	lease, err := a.poll()
	if err == nil {
		lease.since, lease.wanted = b.since, b.wanted
	}
	return lease, err
}

// decline gives back a name that was passed on. A caller whose context ends does not wait for that.
func (a *attempt) decline(b baton) error {
	var err error
	_, a.left, err = orLeave(a.ctx, a.start,
		func() (nothing struct{}) {
			a.abandon(b.term, outcome{token: b.token})
			return nothing
		},
		func(struct{}) { a.over() })
	if a.left {
		return fmt.Errorf("%w: %w", &sqllock.HeldError{Name: a.name}, context.Cause(a.ctx))
	}
	return err // the Locker is closed, which ends the lease
}
