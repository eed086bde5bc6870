package leasetable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/observe"
	"github.com/sqllock/sqllock/internal/option"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
	"github.com/sqllock/sqllock/leasetable/internal/wait"
)

// TryAcquire implements sqllock.Acquirer. Its *sqllock.HeldError names the holder, the holder's token and the time at
// which its lease expires. A name whose lease has expired is taken over at once. If the database's clock was set back,
// so is one whose lease this Locker found as it is, a TTL before.
//
// The error is a *[SharingError] if others hold the name with [WithLimit] and opts contain [WithShared], or the other way
// round.
//
// The error matches sqllock.ErrSchema if the tables are missing, and sqllock.ErrReadOnly if the server or the session
// cannot write. If ctx ends during a statement, TryAcquire may return some 0.1 s later. If there is no connection
// yet, connecting may take 15 s.
func (l *Locker) TryAcquire(ctx context.Context, name string, opts ...sqllock.Option) (*Lease, error) {
	return l.acquire(ctx, acquiring, name, opts, (*attempt).try)
}

// Acquire implements sqllock.Acquirer. It returns the errors of TryAcquire, except those that may pass soon: while
// the database cannot be used or is read-only, Acquire waits as sqllock.Acquirer documents. If the lease that it
// claims the name with ends first, Acquire tries again with a new one. If the answer to an attempt is lost, Acquire
// gives back what that attempt may have acquired. When ctx ends, Acquire may take another 0.1 s to withdraw its request
// from a shared name.
//
// The goroutines of one Locker wait in a queue in memory, first come first served, and hand the name over to each
// other. Only the first in the queue waits for other processes. On PostgreSQL, MySQL and MariaDB it stands in the
// server's own lock queue, on a connection of its own, and the first of them polls the row, after pauses that grow to a
// fiftieth of its wait, and to about 0.5 s. So processes are served in the order of their arrival; one that has stood
// there for some 4 s, or 6 to 10 s in a long wait, looks at the row itself, and goes to the end of the queue. On
// SQLite, behind a pooler, with a PostgreSQL driver other than pgx, on Galera, and for more than seven names at a time,
// each process polls with a read, which writes nothing, after pauses that grow to about 50 ms, and to about 0.5 s for a
// name that does not change hands, in no order.
func (l *Locker) Acquire(ctx context.Context, name string, opts ...sqllock.Option) (*Lease, error) {
	return l.acquire(ctx, acquiring, name, opts, (*attempt).wait)
}

// attempt is one call of TryAcquire, Acquire or Adopt.
type attempt struct {
	*Locker
	*lease.Keeper
	ctx  context.Context //nolint:containedctx // the call's own
	name string
	choice
	began     time.Time
	head      *lease.Head // of the wait queue of the name; nil: the attempt waits in it, or bypasses it
	waited    bool        // the name was read as held, or the database could not be asked
	waiter    wait.Waiter
	claimed   *lease.Claim // while nobody has ended the claim
	abandoned bool         // the caller left; the claim goes on in the background, and leaves the queue at its end
}

const acquiring = "acquire"

func (l *Locker) acquire(
	ctx context.Context, op, name string, opts []sqllock.Option, how func(*attempt) (*lease.Held, error),
) (*Lease, error) {
	ctx, cancel := l.keeper.Bound(ctx)
	defer cancel()
	c, err := l.choose(name, opts)
	began := time.Now()
	a := &attempt{Locker: l, Keeper: l.keeper, name: name, choice: c, ctx: ctx, began: began}
	a.waiter = wait.Waiter{Keeper: l.keeper, Turns: l.turns, Stalled: &l.stalled, Name: name, Wants: c.Wants, Began: began}
	err = errors.Join(err, context.Cause(ctx))
	var lock *lease.Held
	asked, returned := false, false
	defer func() {
		if returned {
			return
		}
		a.interrupted(lock)     //nolint:contextcheck // what it gives up is given up in the background
		if !asked && !c.probe { // a hook may have counted a waiter
			l.events.Asked(ctx, a.request(), nil, &sqllock.OpError{Op: op, Name: name, Err: errUnreturned})
		}
	}()
	if err == nil {
		lock, err = how(a)
	}
	asked = true
	if err != nil {
		a.LeaveReadOnly(err)
		err = &sqllock.OpError{Op: op, Name: name, Err: a.WithCause(ctx, err)}
		if !c.probe { // otherwise another attempt follows
			l.events.Asked(ctx, a.request(), nil, err)
		}
		returned = true
		return nil, err
	}
	acquired := a.request()
	acquired.Token = lock.Fence
	l.events.Asked(ctx, acquired, lock.Hold, nil)
	returned = true
	return &Lease{lock}, nil
}

// request returns the attempt as it is reported.
func (a *attempt) request() observe.Request {
	return observe.Request{Name: a.name, Began: a.began, Waited: a.waited, Whole: a.whole}
}

// interrupted gives up what the attempt has, when a hook or a driver panics, or its goroutine ends there.
func (a *attempt) interrupted(lock *lease.Held) {
	if lock != nil {
		_ = lock.Hold.Release(option.GivingBack(a.ctx)) // if it is not confirmed it goes on in the background
		return
	}
	if a.claimed != nil {
		a.claimed.Abandon(a.ctx, lease.Outcome{Permit: a.Permit(), Unknown: true})
	}
	if !a.abandoned {
		a.head.Leave()
	}
}

// try acquires the name if it is free or its lease has expired. An attempt to get a share or permit bypasses the wait
// queue: another such attempt may be at the head of the queue, and leave enough permits. An attempt to get the whole
// name fails while the queue is occupied (I2).
func (a *attempt) try() (*lease.Held, error) {
	if a.Permit() {
		return a.claimOrEnd()
	}
	if !a.Queue.Try(a.name) {
		return nil, a.heldHere()
	}
	a.enterQueue()
	return a.leaveUnlessHeld(a.claimOrEnd())
}

// claimOrEnd claims the name. If it is held by leases that an earlier attempt found as they are, a TTL ago, it ends them
// and claims the name again (I11).
func (a *attempt) claimOrEnd() (*lease.Held, error) {
	lock, err := a.claim()
	if a.abandoned || !errors.Is(err, sqllock.ErrHeld) {
		return lock, err
	}
	if ended, failed := a.waiter.ExpireUnchanged(a.ctx); !ended || failed != nil {
		return nil, cmp.Or(failed, err)
	}
	return a.claim()
}

// enterQueue notes that the attempt is at the head of the name's wait queue.
func (a *attempt) enterQueue() { a.head = lease.NewHead(a.Keeper, a.turns, a.name, a.Permit()) }

// leaveUnlessHeld leaves the wait queue, unless there is a lock that excludes others, or a claim goes on in the
// background.
func (a *attempt) leaveUnlessHeld(lock *lease.Held, err error) (*lease.Held, error) {
	if !a.abandoned && (lock == nil || lock.Permit) {
		a.head.Leave()
	}
	return lock, err
}

// heldHere returns the error for a name whose wait queue is occupied by this process: one of its goroutines holds the
// lock, or waits for it.
func (a *attempt) heldHere() error {
	held := &sqllock.HeldError{Name: a.name}
	state, err := a.read(a.ctx)
	if err == nil && state.Taken() {
		held.Holder = state.Holder()
	}
	return held
}

// claim makes one attempt in the database. The error is a *HeldError if the name is held. If the claim's own lease
// ends first (a stalled machine, a failover), the name may still be free, so claim tries again with a new lease. The
// loss of that lease is not reported to the caller, because the caller had no lock.
func (a *attempt) claim() (*lease.Held, error) {
	var ended error
	for range claimRounds {
		claim, err := a.Begin(a.ctx, a.name, a.ttl, false)
		if err != nil {
			return nil, err
		}
		a.claimed = claim
		c := claiming{a, claim}
		// All writers of a SQLite file queue for one lock, so on SQLite a claim reads before it tries.
		o, tried := lease.Outcome{}, a.Store.OneWriter() && a.member == nil
		if !tried && a.member == nil && !a.Permit() {
			o, tried = c.tryFree()
		}
		if !a.abandoned && o.Token == 0 && o.Err == nil {
			o = c.inBackground(func(ctx context.Context) lease.Outcome { return c.run(ctx, !tried) })
		}
		a.claimed = nil
		if a.abandoned {
			return nil, context.Cause(a.ctx)
		}
		lock, again, err := c.accept(o)
		if !lost(err) {
			return lock, err
		}
		if ended = err; !again || a.ctx.Err() != nil {
			break
		}
	}
	return nil, &dberr.Error{Err: fmt.Errorf("the lease that the name was claimed by has ended: %v", ended), Transient: true} //nolint:errorlint // see above
}
