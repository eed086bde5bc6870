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
	"github.com/sqllock/sqllock/schema"
)

// TryAcquire implements sqllock.Acquirer. The *sqllock.HeldError names the holder, its token and
// when its lease expires. A name whose lease is over is taken over at once.
//
// A name that others hold together, with a limit or without one, and that is asked for the other way, is a *[LimitError].
//
// The tables being missing is sqllock.ErrSchema; a server or session that cannot write is
// sqllock.ErrReadOnly. When ctx ends while a statement is under way, TryAcquire may return some 0.2 s later. Where there is no
// connection yet, connecting may take 15 s.
func (l *Locker) TryAcquire(ctx context.Context, name string, opts ...sqllock.Option) (*Lease, error) {
	return l.acquire(ctx, acquiring, name, opts, (*attempt).try)
}

// Acquire implements sqllock.Acquirer. It returns the errors of TryAcquire, except for those that can be over soon: while the database
// cannot be used, it waits as sqllock.Acquirer says, also for a server that is read-only. If the lease that it claims the name with ends
// first, it begins again with another one. What an attempt may have taken, whose answer was lost, is given back.
//
// While the name is held Acquire polls it, by a read that writes nothing, after pauses that grow to about 50 ms. So it takes a name that
// much later than it was released. On PostgreSQL, with pgx and without a pooler, a release wakes waiters. Polling only detects expiry and
// forced release there.
//
// The goroutines of one Locker wait in memory, first come first served, and hand the name over to each other. Only one of them polls.
// Of several processes the one that has waited longest goes first.
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
	leaveQueue func()      // gives up the turn of the name; only the first call counts
	waited     bool        // the name was seen held, or the database could not be asked
	holding    observation // the lease that holds it
	priority   priority    // among those of other processes who wait
	dedicated  bool        // it has not got the turn of the name
	abandoned  bool        // a claim goes on in the background, and gives up the turn at its end
	retry      bool        // the lease of the last claim ended first, and another claim may follow

	others        map[string]observation // the leases that hold it together, by id
	saidExclusive bool                   // others may have been kept from joining them
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

// leaveReadOnly closes the connections that are not in use if err says that they lead to a server which cannot write: after a
// failover the way to the primary is another one.
func (l *Locker) leaveReadOnly(err error) {
	if !errors.Is(err, sqllock.ErrReadOnly) {
		return
	}
	for p, most := range map[*pool]int{&l.store.work: workConns, &l.store.renewals: renewalConns} {
		p.SetMaxIdleConns(-1)
		p.SetMaxIdleConns(most)
	}
}

// try takes the name if it is free or its lease is over. A place is asked for out of turn: another goroutine that
// asks for one may hold the turn, and leave enough.
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

// inTurn runs f with the turn of the name, which was taken, and gives it up unless f returns a
// lease that others do not share, or has left a claim behind.
func (a *attempt) inTurn(f func() (*Lease, error)) (*Lease, error) {
	l, name, place := a.Locker, a.name, a.permit() // a itself is larger than a lock, which keeps the function
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

// endTurn gives up the turn of a name, which has room for others soon if it was for a place.
func (l *Locker) endTurn(name string, place bool) {
	if !place || !l.queue.Pass(name, handoff{retryNow: true}) {
		l.queue.Done(name)
	}
}

// heldHere is the error for a name whose turn is taken in this process: one of its goroutines
// holds the lock, or is waiting for it.
func (a *attempt) heldHere() error {
	held := &sqllock.HeldError{Name: a.name}
	state, err := a.read()
	if err == nil && state.taken() {
		held.Holder = state.holder()
	}
	return held
}

// outcome is what a claim came to.
type outcome struct {
	token   int64     // 0: the name was not taken
	state   lockState // what holds the name, if it was not taken
	permit  bool      // it was for one of several places
	unknown bool      // the answer of a statement that may have taken the name was lost
	err     error
}

// claim makes one attempt in the database. The error is a *HeldError when the name is held. If the claim's own lease ends first
// (a stalled machine, a failover), the name may still be free: it is claimed again with a new lease. That this lease was lost is
// not what its caller is told, who had no lock.
func (a *attempt) claim() (lease *Lease, err error) {
	for range claimRounds {
		a.retry = false
		if lease, err = a.claimOnce(); !a.retry || a.ctx.Err() != nil {
			break
		}
	}
	if lost(err) {
		err = &dbError{err: fmt.Errorf("the lease that the name was claimed by has ended: %v", err), transient: true} //nolint:errorlint // see above
	}
	return lease, err
}

// claimOnce claims the name with one lease. It sets a.again if that lease ended first.
func (a *attempt) claimOnce() (*Lease, error) {
	ls, err := a.leaseFor(a.ctx, a.choice.ttl)
	if err != nil {
		return nil, err
	}
	// All writers of a SQLite file queue for one lock: there it is worth a look beforehand.
	hopeful := a.store.dialect != schema.SQLite || a.member != nil
	if hopeful && a.member == nil && !a.permit() {
		reviews := ls.verificationsBegun()
		o, tried := a.acquireShared(ls)
		switch {
		case a.abandoned:
			return nil, context.Cause(a.ctx)
		case o.token != 0 || o.err != nil:
			return a.accept(ls, o, reviews)
		}
		hopeful = !tried
	}
	return a.claimOnLease(ls, func(ctx context.Context) outcome { return a.claimOn(ctx, ls, hopeful) })
}

// takeHere takes the name if it is free, and reports whether that was tried. The statement does not wait for
// the holder, so that its caller can await it, or run it; to hand it to another goroutine costs a tenth of it.
func (a *attempt) acquireShared(ls *lease) (o outcome, tried bool) {
	if o, tried = a.acquireInline(ls); tried || a.priority.announcedSince() != 0 {
		return o, tried
	}
	req, takes := a.request(ls.id), &a.store.acquires
	takes.join(bound.WithValuesOf(a.closing, a.ctx), req)
	select {
	case <-req.done:
		return req.outcome()
	case <-a.ctx.Done():
	}
	if takes.leave(req) {
		return outcome{err: context.Cause(a.ctx)}, true
	}
	a.abandoned = true
	_ = a.hand(func() { // of a Locker that is closed the lease is ended
		<-req.done
		o, _ := req.outcome()
		a.abandon(ls, o)
		a.leaveQueue()
	})
	return o, true
}

// outcome is what a part that was run came to. It reports whether that is final: what the database undid because of
// others is to be repeated, maybe.
func (req *request) outcome() (o outcome, final bool) {
	if outcomeKnown(req.err) {
		return outcome{}, false
	}
	return outcome{token: req.result.Token, err: req.err, unknown: req.err != nil}, true
}

// takeLone does what takeHere does if no other goroutine asks for any name, by a statement of its own.
func (a *attempt) acquireInline(ls *lease) (o outcome, tried bool) {
	var req *request
	tried = a.store.acquires.inline(func() {
		// When its caller leaves, the statement may still be answered for a while. Then its connection is cut, which
		// costs that, and a new lease: it is unknown whether it took the name.
		ctx, done := a.store.acquires.timeouts.with(leaver{a.ctx}, conflictTimeout)
		defer done()
		if ctx.Err() != nil {
			return
		}
		req = a.request(ls.id)
		req.result, req.err = a.store.acquireFree(ctx, req)
	})
	switch {
	case !tried:
		return outcome{}, false
	case req == nil: // nothing was sent
		return outcome{err: context.Cause(a.ctx)}, true
	}
	return req.outcome()
}

// claimOnTerm makes one attempt by f, on t, on which a claim has begun.
func (a *attempt) claimOnLease(ls *lease, f func(context.Context) outcome) (*Lease, error) {
	reviews := ls.verificationsBegun()
	// The statements do not end with the caller's context: to end one in the middle would leave
	// open whether it took the name. Only closing the Locker does, and with it ends the lease.
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

// accept makes a lease of what a claim came to.
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
	if err := ls.attach(lease, reviews); err != nil { // the term ended while the answer was on its way
		a.retry = a.abandon(ls, o)
		return nil, err
	}
	return lease, nil
}

// abandon ends a claim that gives the caller nothing: what was or may have been taken is given
// back. It reports whether another claim may follow at once: a name that was not
// confirmed to be free could still hang on the old lease. Places do not exclude each other like that.
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

// claimRounds bounds how often a claim starts again because the name changed hands, or its own lease ended, under it.
const claimRounds = 5

// claimOn takes the name for t's lease. One who is hopeful does not look before whether it is free.
func (a *attempt) claimOn(ctx context.Context, ls *lease, hopeful bool) (o outcome) {
	if a.permit() {
		return a.claimPermit(ctx, ls)
	}
	for round := range claimRounds {
		if hopeful {
			if o = a.acquireFree(ctx, ls.id, round > 0); o.token != 0 || o.err != nil {
				return o
			}
		}
		o.err = once(ctx, attemptTimeout, func(ctx context.Context) (err error) {
			o.state, err = a.store.read(ctx, a.name)
			return err
		})
		if o.err != nil {
			return o
		}
		state := o.state
		if bytes.Equal(state.LeaseID, ls.id) { // and nobody here has it: whoever took it was told otherwise
			o.unknown = true
			return o
		}
		if state.taken() {
			return o
		}
		if state.LeaseID == nil && state.Permits.Valid {
			var tried bool
			o, tried = a.convert(ctx, ls, state)
			if o.state = state; o.token != 0 || o.err != nil || !tried {
				return o
			}
			continue
		}
		if state.Token == 0 { // absent
			o = a.take(ctx, func(ctx context.Context) (int64, error) { return a.store.insert(ctx, a.request(ls.id)) })
			if o.token != 0 || o.err != nil {
				return o
			}
		}
		if state.LeaseID == nil {
			hopeful = true
			continue
		}
		// The lease is over. A renewal that comes before its burial keeps it alive, and one
		// that comes after finds no row.
		if !state.Gone {
			buried, err := a.expireLease(ctx, expire, state.LeaseID)
			if err != nil || !buried {
				o.err = err
				return o
			}
		}
		o = a.take(ctx, func(ctx context.Context) (int64, error) {
			return a.store.takeover(ctx, a.request(ls.id), state.LeaseID)
		})
		if o.token != 0 || o.err != nil {
			return o
		}
		o.state = state
	}
	return o
}

// part is what a wants of a statement that takes its name.
func (a *attempt) request(id []byte) *request {
	return &request{name: a.name, id: id, since: a.priority.announcedSince(), metadata: bytesOf(a.metadata)}
}

// takeFree takes the name if it is free: by a statement that it shares with others, which does not wait
// for a row that somebody has locked, unless that was done before.
func (a *attempt) acquireFree(ctx context.Context, id []byte, before bool) (o outcome) {
	met := before
	o.err = retryConflicts(ctx, func(ctx context.Context) error {
		req := a.request(id)
		if a.member != nil && !met {
			met = true
			got, done, err := a.store.acquires.joinGroup(ctx, a.member, req)
			if o.token = got.Token; done {
				return err
			}
		}
		got, err := a.store.acquires.do(ctx, req, before)
		o.token, before = got.Token, true
		return err
	})
	o.unknown = o.err != nil && !outcomeKnown(o.err)
	return o
}

// take runs a statement that may take the name.
func (a *attempt) take(ctx context.Context, statement func(context.Context) (token int64, err error)) (o outcome) {
	o.err = retryConflicts(ctx, func(ctx context.Context) (err error) {
		o.token, err = statement(ctx)
		return err
	})
	o.unknown = o.err != nil && !outcomeKnown(o.err)
	return o
}

// bury ends a lease that has expired, or stood still, and reports whether it was this call that did.
func (a *attempt) expireLease(ctx context.Context, st statement, id []byte, more ...any) (bool, error) {
	var rows int64
	err := retryConflicts(ctx, func(ctx context.Context) (err error) {
		rows, err = a.store.change(ctx, &a.store.work, st, append([]any{row{id}}, more...)...)
		return err
	})
	return rows > 0, err
}
