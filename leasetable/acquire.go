package leasetable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/lockname"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// TryAcquire implements sqllock.Acquirer. Its *sqllock.HeldError names the holder, the holder's token and the time at
// which its lease expires. A name whose lease has expired is taken over at once.
//
// The error is a *[LimitError] if others hold the name with [WithLimit] and opts contain [WithShared], or the other way
// round.
//
// The error matches sqllock.ErrSchema if the tables are missing, and sqllock.ErrReadOnly if the server or the session
// cannot write. If ctx ends during a statement, TryAcquire may return some 0.2 s later. If there is no connection
// yet, connecting may take 15 s.
func (l *Locker) TryAcquire(ctx context.Context, name string, opts ...sqllock.Option) (*Lease, error) {
	return l.acquire(ctx, acquiring, name, opts, (*attempt).try)
}

// Acquire implements sqllock.Acquirer. It returns the errors of TryAcquire, except those that may pass soon: while
// the database cannot be used or is read-only, Acquire waits as sqllock.Acquirer documents. If the lease that it
// claims the name with ends first, Acquire tries again with a new one. If the answer to an attempt is lost, Acquire
// gives back what that attempt may have acquired.
//
// While the name is held, Acquire polls it with a read, which writes nothing, after pauses that grow to about 50 ms.
// So it may acquire the name that much later than it was released. On PostgreSQL, with pgx and without a pooler, a
// release wakes waiters. Polling only detects expiry and forced release there.
//
// The goroutines of one Locker wait in a queue in memory, first come first served, and hand the name over to each
// other. Only the first in the queue polls. Among several processes, the one that has waited longest goes first.
func (l *Locker) Acquire(ctx context.Context, name string, opts ...sqllock.Option) (*Lease, error) {
	return l.acquire(ctx, acquiring, name, opts, (*attempt).waitAtMost)
}

// attempt is one call of TryAcquire, Acquire or Adopt.
type attempt struct {
	*Locker
	ctx  context.Context //nolint:containedctx // the call's own
	name string
	choice
	began      time.Time
	leaveQueue func()      // leaves the wait queue of the name; only the first call counts
	waited     bool        // the name was read as held, or the database could not be asked
	holding    observation // the state of the name when it was last read as held
	priority   priority    // among the waiters of other processes
	dedicated  bool        // it bypasses the wait queue of the name
	abandoned  bool        // the caller left; the claim goes on in the background, and leaves the queue at its end
	retry      bool        // the lease of the last claim ended first; another claim may follow

	others        map[string]observation // the leases that have shares or permits of the name, by id
	saidExclusive bool                   // this attempt may have kept others from acquiring shares or permits
}

const acquiring = "acquire"

func (l *Locker) acquire(
	ctx context.Context, op, name string, opts []sqllock.Option, how func(*attempt) (*Lease, error),
) (*Lease, error) {
	ctx, cancel := l.bound(ctx)
	defer cancel()
	c, err := choose(opts)
	if c.ttl == 0 {
		c.ttl = l.ttl
	}
	began := time.Now()
	a := &attempt{Locker: l, name: name, choice: c, ctx: ctx, began: began}
	err = errors.Join(lockname.Check(name), err, checkTTL(c.ttl), context.Cause(ctx))
	var lease *Lease
	if err == nil {
		lease, err = how(a)
	}
	if err != nil {
		l.leaveReadOnly(err)
		err = &sqllock.OpError{Op: op, Name: name, Err: l.withCause(ctx, err)}
		if !c.probe || !errors.Is(err, sqllock.ErrHeld) {
			l.events.Asked(ctx, name, began, a.waited, nil, err)
		}
		return nil, err
	}
	l.events.Asked(ctx, name, began, a.waited, lease.hold, nil)
	return lease, nil
}

// leaveReadOnly closes the idle connections if err says that they lead to a server that cannot write: after a
// failover, new connections may lead to the new primary.
func (l *Locker) leaveReadOnly(err error) {
	if !errors.Is(err, sqllock.ErrReadOnly) {
		return
	}
	l.store.DropIdle()
}

// try acquires the name if it is free or its lease has expired. An attempt to get a share or permit bypasses the wait
// queue: another such attempt may be at the head of the queue, and leave enough permits.
func (a *attempt) try() (*Lease, error) {
	if a.permit() {
		a.leaveQueue = func() {}
		return a.claim()
	}
	if !a.queue.Try(a.name) {
		return nil, a.heldHere()
	}
	return a.inTurn(a.claim)
}

// inTurn runs f while the attempt is at the head of the name's wait queue. The caller has put it there. inTurn then
// leaves the queue, unless f returns a lock that excludes others, or has left a claim in the background.
func (a *attempt) inTurn(f func() (*Lease, error)) (*Lease, error) {
	l, name, place := a.Locker, a.name, a.permit() // not a itself: the lock keeps the function, and a is larger than a lock
	var over atomic.Bool
	a.leaveQueue = func() {
		if over.CompareAndSwap(false, true) {
			l.endTurn(name, place)
		}
	}
	lease, err := f()
	if !a.abandoned && (lease == nil || lease.permit) {
		a.leaveQueue()
	}
	return lease, err
}

// endTurn leaves the wait queue of a name. After an attempt to get a share or permit it has the next waiter poll at
// once (retryNow), because there may be room for it soon.
func (l *Locker) endTurn(name string, place bool) {
	if !place || !l.queue.Pass(name, handoff{retryNow: true}) {
		l.queue.Done(name)
	}
}

// heldHere returns the error for a name whose wait queue is occupied by this process: one of its goroutines holds the
// lock, or waits for it.
func (a *attempt) heldHere() error {
	held := &sqllock.HeldError{Name: a.name}
	state, err := a.read()
	if err == nil && state.Taken() {
		held.Holder = state.Holder()
	}
	return held
}

// outcome says how a claim ended.
type outcome struct {
	token   int64       // 0: the name was not acquired
	state   store.State // what holds the name, if it was not acquired
	permit  bool        // the claim was for a share or permit
	unknown bool        // the answer to a statement that may have acquired the name was lost
	err     error
}

// claim makes one attempt in the database. The error is a *HeldError if the name is held. If the claim's own lease
// ends first (a stalled machine, a failover), the name may still be free, so claim tries again with a new lease. The
// loss of that lease is not reported to the caller, because the caller had no lock.
func (a *attempt) claim() (lease *Lease, err error) {
	for range claimRounds {
		a.retry = false
		if lease, err = a.claimOnce(); !a.retry || a.ctx.Err() != nil {
			break
		}
	}
	if lost(err) {
		err = &dberr.Error{Err: fmt.Errorf("the lease that the name was claimed by has ended: %v", err), Transient: true} //nolint:errorlint // see above
	}
	return lease, err
}

// claimOnce claims the name with one lease. It sets a.retry if that lease ended first.
func (a *attempt) claimOnce() (*Lease, error) {
	ls, err := a.leaseFor(a.ctx, a.choice.ttl)
	if err != nil {
		return nil, err
	}
	// All writers of a SQLite file queue for one lock, so on SQLite a claim reads before it tries.
	tryFirst := !a.store.OneWriter() || a.member != nil
	if tryFirst && a.member == nil && !a.permit() {
		reviews := ls.verificationsBegun()
		o, tried := a.acquireShared(ls)
		switch {
		case a.abandoned:
			return nil, context.Cause(a.ctx)
		case o.token != 0 || o.err != nil:
			return a.accept(ls, o, reviews)
		}
		tryFirst = !tried
	}
	return a.claimOnLease(ls, func(ctx context.Context) outcome { return a.claimOn(ctx, ls, tryFirst) })
}

// acquireShared acquires the name if it is free, inline or in a batch. It reports whether that gave a final outcome:
// false means that it was not tried, or that the database undid it because of others. The statement does not wait for
// the holder, so the caller can wait for the batch or run the statement itself. Handing the statement to another
// goroutine costs a tenth of it.
func (a *attempt) acquireShared(ls *lease) (o outcome, tried bool) {
	if o, tried = a.acquireInline(ls); tried || a.priority.announcedSince() != 0 {
		return o, tried
	}
	takes := a.store.Acquires
	call := takes.Join(bound.WithValuesOf(a.closing, a.ctx), a.request(ls.id))
	select {
	case <-call.Done():
		return outcomeOf(call.Result())
	case <-a.ctx.Done():
	}
	if takes.Leave(call) {
		return outcome{err: context.Cause(a.ctx)}, true
	}
	a.abandoned = true
	_ = a.hand(func() { // it fails if the Locker is closed, which ends the lease
		<-call.Done()
		o, _ := outcomeOf(call.Result())
		a.abandon(ls, o)
		a.leaveQueue()
	})
	return o, true
}

// outcomeOf returns the outcome of a statement that acquires a free name, and reports whether it is final. It is not
// final if the database undid the statement because of others: it may then be repeated.
func outcomeOf(got store.Result, err error) (o outcome, final bool) {
	if dberr.OutcomeKnown(err) {
		return outcome{}, false
	}
	return outcome{token: got.Token, err: err, unknown: err != nil}, true
}

// acquireInline does what acquireShared does, by a statement of its own, if no other goroutine is acquiring any name.
func (a *attempt) acquireInline(ls *lease) (o outcome, tried bool) {
	final := true
	tried = a.store.Acquires.Inline(func() {
		// After the caller has left, the answer to the statement may still come for a while. Then the connection is
		// cut. That costs the connection and a new lease, because it is unknown whether the statement acquired the
		// name.
		if a.ctx.Err() != nil { // nothing was sent
			o.err = context.Cause(a.ctx)
			return
		}
		ctx, done := linger(a.ctx, dberr.ConflictTimeout)
		defer done()
		o, final = outcomeOf(a.store.AcquireFree(ctx, a.request(ls.id)))
	})
	return o, tried && final
}

// claimOnLease makes one attempt by running f on ls, on which a claim has begun.
func (a *attempt) claimOnLease(ls *lease, f func(context.Context) outcome) (*Lease, error) {
	reviews := ls.verificationsBegun()
	// The statements do not end with the caller's context: ending one midway would leave open whether it acquired the
	// name. Only Close of the Locker ends them, and it ends the lease, too.
	var o outcome
	var err error
	o, a.abandoned, err = orLeave(a.ctx, a.hand,
		func() outcome { return f(bound.WithValuesOf(a.closing, a.ctx)) },
		func(o outcome) {
			a.abandon(ls, o)
			a.leaveQueue()
		})
	switch {
	case err != nil:
		ls.endClaim()
		return nil, err
	case a.abandoned:
		return nil, context.Cause(a.ctx)
	}
	return a.accept(ls, o, reviews)
}

// accept turns the outcome of a claim into a lock or an error.
func (a *attempt) accept(ls *lease, o outcome, reviews int) (*Lease, error) {
	if o.err != nil || o.token == 0 {
		a.abandon(ls, o)
		if o.err != nil {
			return nil, o.err
		}
		return nil, a.held(o.state)
	}
	lease := newLease(a.ctx, ls, a.name, o.token, a.leaveQueue)
	lease.minHold, lease.permit, lease.dedicated = a.minHold, o.permit, a.dedicated
	if err := ls.attach(lease, reviews); err != nil { // the lease ended while the answer was on its way
		a.retry = a.abandon(ls, o)
		return nil, err
	}
	return lease, nil
}

// abandon ends a claim that gives the caller nothing: it gives back what the claim acquired or may have acquired. It
// reports whether another claim may follow at once. It may not if the name was not confirmed to be free, because the
// old lease could still hold it. Permits do not exclude each other like that.
func (a *attempt) abandon(ls *lease, o outcome) bool {
	defer ls.endClaim()
	if o.permit {
		a.abandonPermit(ls, o)
		return true
	}
	if o.token != 0 {
		_, err := ls.release(context.WithoutCancel(a.ctx), a.name, o.token, 0)
		o.unknown = err != nil
	}
	if o.unknown {
		ls.leaveOrphan(a.name, 0)
	}
	return !o.unknown
}

// claimRounds bounds how often a claim starts again because the name changed hands meanwhile, or because its own
// lease ended.
const claimRounds = 5

// claimOn acquires the name for ls. If tryFirst is set it tries first, without reading whether the name is free.
func (a *attempt) claimOn(ctx context.Context, ls *lease, tryFirst bool) (o outcome) {
	if a.permit() {
		return a.claimPermit(ctx, ls)
	}
	for round := range claimRounds {
		if tryFirst {
			if o = a.acquireFree(ctx, ls.id, round > 0); o.token != 0 || o.err != nil {
				return o
			}
		}
		o.err = dberr.Once(ctx, dberr.AttemptTimeout, func(ctx context.Context) (err error) {
			o.state, err = a.store.Read(ctx, a.name)
			return err
		})
		if o.err != nil {
			return o
		}
		state := o.state
		if bytes.Equal(state.LeaseID, ls.id) { // but no lock here has it: the claim that acquired it did not learn of it
			o.unknown = true
			return o
		}
		if state.Taken() {
			return o
		}
		if state.LeaseID == nil && state.Limit.Valid {
			var tried bool
			o, tried = a.convert(ctx, ls, state)
			if o.state = state; o.token != 0 || o.err != nil || !tried {
				return o
			}
			continue
		}
		if state.Token == 0 { // the name has no row
			o = a.take(ctx, func(ctx context.Context) (int64, error) { return a.store.Insert(ctx, a.request(ls.id)) })
			if o.token != 0 || o.err != nil {
				return o
			}
		}
		if state.LeaseID == nil {
			tryFirst = true
			continue
		}
		// The lease has expired. A renewal that comes before the expire statement keeps the lease alive; a renewal
		// that comes after it finds no row.
		if !state.Gone {
			expired, err := a.expireLease(ctx, state.LeaseID)
			if err != nil || !expired {
				o.err = err
				return o
			}
		}
		o = a.take(ctx, func(ctx context.Context) (int64, error) {
			return a.store.Takeover(ctx, a.request(ls.id), state.LeaseID)
		})
		if o.token != 0 || o.err != nil {
			return o
		}
		o.state = state
	}
	return o
}

// request returns the request for a statement that acquires the name for the lease id.
func (a *attempt) request(id []byte) *store.Request {
	return &store.Request{Name: a.name, ID: id, Since: a.priority.announcedSince(), Metadata: bytesOf(a.metadata)}
}

// AcquireFree acquires the name if it is free. The first time it uses a batch, whose statement does not wait for a
// row lock. If before is set it was tried already, and a statement of its own may wait for the row.
func (a *attempt) acquireFree(ctx context.Context, id []byte, before bool) (o outcome) {
	met := before
	o.err = dberr.RetryConflicts(ctx, func(ctx context.Context) error {
		req := a.request(id)
		if a.member != nil && !met {
			met = true
			if got, done, err := a.joinGroup(ctx, req); done {
				o.token = got.Token
				return err
			}
		}
		got, err := a.store.AcquireSoon(ctx, req, before)
		o.token, before = got.Token, true
		return err
	})
	o.unknown = o.err != nil && !dberr.OutcomeKnown(o.err)
	return o
}

// take runs a statement that may acquire the name, and repeats it if the database undid it because of others.
func (a *attempt) take(ctx context.Context, statement func(context.Context) (token int64, err error)) (o outcome) {
	o.err = dberr.RetryConflicts(ctx, func(ctx context.Context) (err error) {
		o.token, err = statement(ctx)
		return err
	})
	o.unknown = o.err != nil && !dberr.OutcomeKnown(o.err)
	return o
}

// expireLease deletes the row of a lease that has expired. It reports whether this call deleted it.
func (a *attempt) expireLease(ctx context.Context, id []byte) (expired bool, err error) {
	err = dberr.RetryConflicts(ctx, func(ctx context.Context) (err error) {
		expired, err = a.store.Expire(ctx, id)
		return err
	})
	return expired, err
}
