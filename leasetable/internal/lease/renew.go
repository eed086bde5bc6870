package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/trouble"
	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// errUnused is the cause of the end of a lease that holds nothing.
var errUnused = errors.New("the lease is not in use")

// renewals keep a lease alive.
type renewals struct {
	*Lease
	began       time.Time     // when the row was sent
	first       time.Time     // when the first renewal is due
	turn        chan struct{} // has room for one: the attempt under way
	failed      time.Time     // guarded by the lease's mu: when the last attempt that failed was sent
	failure     error         // guarded by the lease's mu: its error
	failureTold time.Time     // guarded by the lease's mu: when a failed renewal was last reported; zero: the last one was confirmed
}

// interval is the time from one renewal of a lease to the next, and how often others look at one.
func interval(ttl time.Duration) time.Duration { return ttl / 3 }

// loop renews the lease at each interval, however many locks it holds. While the machine is suspended, the timer stands still;
// a renewal that was due meanwhile is sent IdleTime/4 later at the latest. loop returns when the lease has ended.
func (r *renewals) loop() {
	defer r.giveBack()
	defer r.deleteRow()
	defer r.finish(errLate) // if a driver ends the goroutine: nobody renews the lease any more, and its row stays
	next := r.first
	timer := time.NewTimer(clock.Until(next))
	defer timer.Stop()
	unused := time.NewTicker(conn.IdleTime / 4)
	defer unused.Stop()
	for {
		select {
		case <-r.ended:
			return
		case <-timer.C:
		case <-unused.C:
		case <-r.wake:
		}
		if r.finishUnused() {
			return
		}
		if clock.Until(next) <= 0 {
			next = clock.Now().Add(interval(r.TTL)) // on a slow network the renewal takes some of that time
			r.untilConfirmed()
			timer.Reset(clock.Until(next))
		}
	}
}

// limitedTime is the minimum time for which a lease is kept while other processes may get no connection.
const limitedTime = time.Second

// finishUnused ends a lease that holds nothing and will not be used soon: it is retired, or has not been used for
// IdleTime or, if that is less, for a TTL (I15). While the server has no connection left, limitedTime after the start
// of the lease suffices, so that other processes get the connection. It reports whether the lease has ended.
func (r *renewals) finishUnused() bool {
	r.mu.Lock()
	spent := r.retired || time.Since(r.used) > min(r.TTL, conn.IdleTime) || r.store.Limited() && time.Since(r.began) > limitedTime
	unused := r.claims == 0 && len(r.locks) == 0 && spent && !slices.ContainsFunc(r.Orphans.list, (*orphan).pending)
	if unused {
		r.retired = true // from here on no claim begins
	}
	r.mu.Unlock()
	if unused {
		r.finish(errUnused)
	}
	return unused
}

// giveBack closes the connection for renewals if no lease is left.
func (r *renewals) giveBack() {
	if len(r.keeper.EveryLease()) == 0 {
		r.store.GiveBack()
	}
}

// untilConfirmed renews the lease. An error says nothing about the lease, so it tries again until the deadline, when the
// timer ends the lease in any case.
func (r *renewals) untilConfirmed() {
	ctx, cancel := r.untilDeadline()
	defer cancel()
	began := time.Now()
	for pause := backoff.First; ; pause = backoff.Patient(pause, began) {
		asked, err := r.awaitTurn(ctx)
		if err == nil {
			err = r.inTurn(ctx, asked)
		}
		if err == nil || backoff.Sleep(ctx, jitter.Around(pause)) != nil {
			return
		}
	}
}

// Now renews the lease for a caller. The statement goes on when the caller leaves, because all renewals share its
// connection. Callers that wait for their turn share the next attempt.
func (r *renewals) Now(ctx context.Context) error {
	asked, err := r.awaitTurn(ctx)
	if err != nil {
		return err
	}
	_, _, err = OrLeave(ctx, r.keeper.Start, func() (none struct{}, err error) { //nolint:contextcheck // the statement outlives the caller
		ctx, cancel := r.untilDeadline()
		defer cancel()
		return none, r.inTurn(ctx, asked)
	}, nil)
	return err
}

// awaitTurn waits until no attempt to renew this lease is under way, and keeps others from beginning one until attempt has
// returned. asked is when awaitTurn was called.
func (r *renewals) awaitTurn(ctx context.Context) (asked time.Time, err error) {
	asked = clock.Now()
	if ctx.Err() == nil {
		select {
		case r.turn <- struct{}{}:
			return asked, nil
		case <-ctx.Done():
		}
	}
	return asked, context.Cause(ctx)
}

// inTurn makes one attempt to renew that was asked for at the given time, or returns the result of one that was sent since.
// It returns nil if the lease was extended, or has ended. If the row is gone it ends every lock of the lease (I20).
func (r *renewals) inTurn(ctx context.Context, asked time.Time) error {
	sent, news, err := r.attempt(ctx, asked)
	switch { // after the turn: a hook may ask for a renewal
	case !news, err != nil && r.keeper.Closing.Err() != nil: // Close cuts it off
	case err != nil:
		r.keeper.events.RenewalFailed(ctx, clock.Since(sent), len(r.held()), err)
	default:
		r.keeper.events.Renewed(ctx, clock.Since(sent), len(r.held()))
	}
	return err
}

// attempt is what inTurn does until the end of the turn. It reports whether its outcome is news for a hook.
func (r *renewals) attempt(ctx context.Context, asked time.Time) (sent time.Time, news bool, err error) {
	defer func() { <-r.turn }()
	if known, err := r.outcomeSince(asked); known {
		return sent, false, err
	}
	limit, patience := r.timeouts()
	// A late answer is the first sign of trouble: another connection is opened for the next attempt.
	late := time.AfterFunc(patience, r.store.PrepareRenewal)
	defer late.Stop()
	var there bool
	var changes int64
	sent = clock.Now()
	err = dberr.Once(ctx, limit, func(ctx context.Context) (err error) {
		there, changes, err = r.store.Renew(ctx, r.ID)
		return err
	})
	switch {
	case err != nil:
		r.keeper.LeaveReadOnly(err)
		return sent, r.failedNow(sent, err), err
	case !there:
		r.finish(errEnded) //nolint:contextcheck // the locks have contexts of their own
		return sent, false, nil
	}
	r.keeper.wrote()
	r.confirmed(sent, limit)
	r.verification.ifChanged(changeMark{changes, r.store.RenewalConnection()})
	return sent, true, nil
}

// outcomeSince returns the outcome of an attempt that was sent after the given time, if there is one. It is nil if
// the lease has ended.
func (r *renewals) outcomeSince(asked time.Time) (known bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.cause != nil, r.trusted.After(asked.Add(r.TTL - r.margin())):
		return true, nil
	case r.failure != nil && r.failed.After(asked):
		return true, r.failure
	}
	return false, nil
}

// timeouts returns how long an attempt to renew may take, and after what time another connection is opened for the
// next attempt. On a slow network both follow the duration of the last renewal. All leases share one connection. So an
// attempt that hangs must end soon enough for the lease with the shortest TTL. It must not end too soon either: it may be
// queued behind the renewals of all other leases.
func (r *renewals) timeouts() (limit, patience time.Duration) {
	pace := r.keeper.pace()
	slow := func(paces int, ttl time.Duration) time.Duration { // leaves time for another attempt, if one can succeed
		return min(time.Duration(paces)*pace, max(ttl/3, pace*3/2))
	}
	leases, shortest := r.keeper.EveryLease(), r.TTL
	for _, ls := range leases {
		shortest = min(shortest, ls.TTL)
	}
	limit = min(max(min(r.TTL/4, dberr.AttemptTimeout), slow(3, r.TTL)), max(shortest/4, slow(2+len(leases), shortest)))
	return limit, max(r.TTL/12, 2*pace)
}

// confirmed moves the deadline after a renewal that was sent at the given time was confirmed within limit (I3). If the
// process was stopped meanwhile, the new deadline may have passed, too.
func (r *renewals) confirmed(sent time.Time, limit time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause != nil {
		return
	}
	r.keeper.noteRenewal(sent, limit)
	r.failure, r.failureTold = nil, time.Time{}
	if trusted := sent.Add(r.TTL - r.margin()); trusted.After(r.trusted) { // it never falls
		r.trusted = trusted
		r.setTimers()
	}
}

// failedNow notes a failed attempt. It reports whether to tell a hook: of the first one, and then of at most one every
// trouble.TellEvery.
func (r *renewals) failedNow(sent time.Time, err error) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed, r.failure = sent, err
	if !r.failureTold.IsZero() && time.Since(r.failureTold) < trouble.TellEvery {
		return false
	}
	r.failureTold = time.Now()
	return true
}

// untilDeadline returns a context that ends when the database is no longer sure to keep the lease, or when the Locker
// is closed.
func (r *renewals) untilDeadline() (context.Context, context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return context.WithDeadline(r.keeper.Closing, clock.Plain(r.trusted))
}

// late returns errLate. If the TTL was too short to reconnect, the error names a TTL that would do.
func (r *renewals) late() error {
	took, left := r.store.ConnectingTook(), r.TTL/2 // see TTL and network in doc.go
	if _, patience := r.timeouts(); took+patience <= left {
		return errLate
	}
	least := max(3*took, 2*took+4*r.keeper.pace()).Round(time.Millisecond)
	return fmt.Errorf("%w: connecting takes %v here, and the TTL of %v leaves %v for it; a TTL of %v would do",
		errLate, took.Round(time.Millisecond), r.TTL, left, least)
}

// deleteRow deletes the lease row, unless the lease was lost or has expired, or a name has to be kept that would be free
// then (I22). It retries until the row would have expired, because the row may still hold an orphan (I15).
func (r *renewals) deleteRow() {
	r.mu.Lock()
	told := errors.Is(r.cause, sqllock.ErrLost) || errors.Is(r.cause, sqllock.ErrExpired)
	expiry := r.trusted.Add(r.margin())
	r.mu.Unlock()
	if told {
		return
	}
	ctx, cancel := r.keeper.untilClosed()
	defer cancel()
	// If this fails, the row has expired, or soon will: nobody renews it any more.
	if !r.Orphans.keepNames(ctx, clock.Until(expiry)) {
		return
	}
	_ = dberr.Retry(ctx, clock.Until(expiry), func(ctx context.Context) error {
		return r.store.EndLease(ctx, r.ID)
	})
}
