package leasetable

import (
	"bytes"
	"context"
	"errors"
	"math"

	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// claiming is one claim of an attempt, for a lease.
type claiming struct {
	*attempt
	c *lease.Claim
}

// tryFree acquires the name if it is free, inline or together with the claims of other callers. It reports whether that
// gave a final outcome: false means that it was not tried, or that the database undid it because of others. The
// statement does not wait for the holder, so the caller can wait for it or run it itself. What it acquires for a caller
// that has left is given back (I19).
func (a claiming) tryFree() (o lease.Outcome, tried bool) {
	queue := a.Store.Acquires
	queue.Inline(func() {
		if a.ctx.Err() != nil { // nothing was sent
			o.Err, tried = context.Cause(a.ctx), true
			return
		}
		// After the caller has left, the answer to the statement may still come for a while. Then the connection is
		// cut. That costs the connection and a new lease, because it is unknown whether the statement acquired the
		// name.
		ctx, done := lease.Linger(a.ctx, a.c.Timeout())
		defer done()
		req := a.request()
		got, err := a.Store.AcquireFree(ctx, req)
		o, tried = outcomeOf(a.Store.InsertNew(ctx, req, got, err))
	})
	if tried || a.waiter.AnnouncedSince() != 0 {
		return o, tried
	}
	ctx, cancel := context.WithTimeout(bound.WithValuesOf(a.Closing, a.ctx), a.c.Timeout())
	call := queue.Join(ctx, a.request())
	select {
	case <-call.Done():
		cancel()
		return outcomeOf(call.Result())
	case <-a.ctx.Done():
	}
	if queue.Leave(call) {
		cancel()
		return lease.Outcome{Err: context.Cause(a.ctx)}, true
	}
	a.abandoned = true
	_ = a.Hand(func() { // it fails if the Locker is closed, which ends the lease
		<-call.Done()
		cancel()
		o, _ := outcomeOf(call.Result())
		a.leave(o)
	})
	return o, true
}

// outcomeOf returns the outcome of a statement that acquires a free name, and reports whether it is final. It is not
// final if the database undid the statement because of others: it may then be repeated.
func outcomeOf(got store.Result, err error) (o lease.Outcome, final bool) {
	switch {
	case errors.Is(err, dberr.ErrUnsent): // the claim has waited for as long as it may
		return lease.Outcome{Err: err}, true
	case dberr.OutcomeKnown(err):
		return lease.Outcome{}, false
	}
	return lease.Outcome{Token: got.Token, Err: err, Unknown: err != nil}, true
}

// inBackground runs f, which claims the name, in another goroutine: its statements do not end with the caller's
// context, since ending one midway would leave open whether it acquired the name. Only Close of the Locker ends them,
// and it ends the lease, too. If the caller leaves, the claim is abandoned when f returns (I19).
func (a claiming) inBackground(f func(context.Context) lease.Outcome) lease.Outcome {
	o, left, err := lease.OrLeave(a.ctx, a.Hand,
		func() (lease.Outcome, error) { return f(bound.WithValuesOf(a.Closing, a.ctx)), nil },
		func(o lease.Outcome, err error) { a.leave(a.orUnknown(o, err)) })
	a.abandoned = left // then nobody asks for the outcome
	return a.orUnknown(o, err)
}

// orUnknown returns the outcome of a claim: o, unless err says that a driver has ended its goroutine.
func (a claiming) orUnknown(o lease.Outcome, err error) lease.Outcome {
	if err != nil {
		return lease.Outcome{Err: err, Unknown: true, Permit: a.Permit()}
	}
	return o
}

// leave abandons the claim and leaves the wait queue, for a caller that has left.
func (a claiming) leave(o lease.Outcome) {
	defer a.head.Leave() // also if a driver ends the goroutine
	a.c.Abandon(a.ctx, o)
}

// accept turns the outcome of a claim into a lock or an error. It reports whether another claim may follow because the
// lease ended while the answer was on its way.
func (a claiming) accept(o lease.Outcome) (lock *lease.Held, again bool, err error) {
	if o.Err != nil {
		a.c.Abandon(a.ctx, o)
		return nil, false, o.Err
	}
	if o.Token == 0 {
		a.outage.Over()
		a.c.Abandon(a.ctx, o)
		return nil, false, a.held(o.State)
	}
	lock = lease.NewHeld(a.ctx, a.c.Lease, a.name, o.Token, a.head)
	lock.MinHold, lock.Permit = a.minHold, o.Permit
	if err := a.c.Commit(lock); err != nil {
		return nil, a.c.Abandon(a.ctx, o), err
	}
	a.outage.Over()
	return lock, false, nil
}

// errLastToken is the error of a name whose token cannot rise, because somebody has written the highest one.
var errLastToken = &dberr.Error{
	Err:          errors.New("the name has the highest token that there is: write a lower one into its row, which no holder had"),
	OutcomeKnown: true,
}

// claimRounds bounds how often a claim starts again because the name changed hands meanwhile, or because its own
// lease ended.
const claimRounds = 5

// run acquires the name. If tryFirst is set it tries first, without reading whether the name is free. It takes the name
// over only from a lease whose row is gone (I9).
func (a claiming) run(ctx context.Context, tryFirst bool) (o lease.Outcome) {
	if a.Permit() {
		return a.permits.Claim(ctx, a.ctx, a.c, a.Wants)
	}
	for round := range claimRounds {
		if tryFirst {
			if o = a.acquireFree(ctx, round > 0); o.Token != 0 || o.Err != nil {
				return o
			}
		}
		if o.State, o.Err = a.read(ctx); o.Err != nil {
			return o
		}
		state := o.State
		var statement func(context.Context) (token int64, err error)
		switch {
		case bytes.Equal(state.LeaseID, a.c.ID): // but no lock here has it: the claim that acquired it did not learn of it
			o.Unknown = true
			return o
		case state.Taken():
			return o
		case state.Token == math.MaxInt64:
			o.Err = errLastToken
			return o
		case state.LeaseID != nil: // it has expired
			// A renewal that comes before the expire statement keeps the lease alive; one that comes after it finds no row.
			if !state.Gone {
				var expired bool
				if expired, o.Err = a.Expire(ctx, state.LeaseID); o.Err != nil {
					return o
				}
				if !expired { // it was renewed, or another claim has ended it meanwhile
					continue
				}
			}
			statement = func(ctx context.Context) (int64, error) { return a.Store.Takeover(ctx, a.request(), state.LeaseID) }
		case state.Limit.Valid:
			var cleared bool
			if cleared, o.Err = a.permits.MakeWhole(ctx, a.c, state); o.Err != nil || !cleared && round > 0 {
				return o
			}
			if !cleared { // maybe another claim has ended the lease meanwhile: once more
				continue
			}
			statement = func(ctx context.Context) (int64, error) {
				return a.Store.Convert(ctx, a.name, state.Token, a.c.ID, bytesOf(a.metadata))
			}
		case state.Token == 0 && !a.Store.OneWriter(): // the name has no row; where all writers share statements, those insert
			tryFirst = true
			statement = func(ctx context.Context) (int64, error) { return a.Store.Insert(ctx, a.request()) }
		default:
			tryFirst = true
			continue
		}
		if o = a.take(ctx, statement); o.Token != 0 || o.Err != nil {
			return o
		}
		o.State = state
	}
	return o
}

// request returns the request for a statement that acquires the name.
func (a claiming) request() *store.Request {
	return &store.Request{Name: a.name, ID: a.c.ID, Since: a.waiter.AnnouncedSince(), Metadata: bytesOf(a.metadata)}
}

// acquireFree acquires the name if it is free. The first time it uses a batch, whose statement does not wait for a
// row lock. If before is set it was tried already, and a statement of its own may wait for the row.
func (a claiming) acquireFree(ctx context.Context, before bool) lease.Outcome {
	return a.take(ctx, func(ctx context.Context) (int64, error) {
		req := a.request()
		if a.member != nil {
			if got, done, err := a.joinGroup(ctx, req); done {
				return got.Token, err
			}
		}
		got, err := a.Store.AcquireSoon(ctx, req, before)
		before = true
		return got.Token, err
	})
}

// take runs a statement that may acquire the name, and repeats it if the database undid it because of others.
func (a claiming) take(ctx context.Context, statement func(context.Context) (token int64, err error)) (o lease.Outcome) {
	o.Token, o.Err = dberr.Value(ctx, dberr.RetryConflicts, a.c.Timeout(), statement)
	o.Unknown = o.Err != nil && !dberr.OutcomeKnown(o.Err)
	return o
}
