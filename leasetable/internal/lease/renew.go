package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/trouble"
	"github.com/sqllock/sqllock/leasetable/internal/backoff"
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
	pace        time.Duration // guarded by the lease's mu: how long the last renewal took, or the insert of the row
	failureTold time.Time     // guarded by the lease's mu: when a failed renewal was last reported; zero: the last one was confirmed
}

// interval is the time from one renewal of a lease to the next, and how often others look at one.
func interval(ttl time.Duration) time.Duration { return ttl / 3 }

// loop renews the lease at each interval, however many locks it holds. While the machine is suspended, the timer stands still;
// a renewal that was due meanwhile is sent IdleTime/4 later at the latest. loop returns when the lease has ended.
func (r *renewals) loop() {
	defer r.giveBack()
	defer r.deleteRow()
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
		if r.once(ctx) == nil || backoff.Sleep(ctx, jitter.Around(pause)) != nil {
			return
		}
	}
}

// Now renews the lease for a caller. The statement goes on when the caller leaves, because all renewals share its
// connection.
func (r *renewals) Now(ctx context.Context) error {
	failed, left, err := OrLeave(ctx, r.keeper.Start,
		func() error { //nolint:contextcheck // the statement outlives the caller
			ctx, cancel := r.untilDeadline()
			defer cancel()
			return r.once(ctx)
		},
		func(error) {})
	if left {
		return context.Cause(ctx)
	}
	return cmp.Or(err, failed)
}

// once makes one attempt to renew. It returns nil if the lease was extended, or has ended. If the row is gone it
// ends every lock of the lease (I20).
func (r *renewals) once(ctx context.Context) error {
	var there bool
	var changes int64
	limit, patience := r.timeouts()
	// A late answer is the first sign of trouble: another connection is opened for the next attempt.
	late := time.AfterFunc(patience, r.store.PrepareRenewal)
	defer late.Stop()
	sent := clock.Now()
	err := dberr.Once(ctx, limit, func(ctx context.Context) (err error) {
		there, changes, err = r.store.Renew(ctx, r.ID)
		return err
	})
	switch {
	case err != nil:
		if r.failureIsNews() {
			r.keeper.events.RenewalFailed(ctx, clock.Since(sent), len(r.held()), err)
			r.keeper.LeaveReadOnly(err)
		}
		return err
	case !there:
		r.finish(fmt.Errorf("%w: its lease was ended by the database's clock or by somebody else", sqllock.ErrLost)) //nolint:contextcheck // the locks have contexts of their own
	default:
		r.keeper.events.Renewed(ctx, clock.Since(sent), r.confirmed(sent))
		r.verification.ifChanged(changeMark{changes, r.store.RenewalConnection()})
	}
	return nil
}

// timeouts returns how long an attempt to renew may take, and after what time another connection is opened for the
// next attempt. On a slow network both follow the duration of the last renewal.
func (r *renewals) timeouts() (limit, patience time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(min(r.TTL/4, dberr.AttemptTimeout), 3*r.pace), max(r.TTL/12, 2*r.pace)
}

// confirmed moves the deadline after a renewal that was sent at the given time was confirmed (I3). If the process was
// stopped meanwhile, the new deadline may have passed, too. It returns how many locks the renewal keeps.
func (r *renewals) confirmed(sent time.Time) (locks int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause != nil {
		return 0
	}
	r.pace, r.failureTold = clock.Since(sent), time.Time{}
	if trusted := sent.Add(r.TTL - r.margin()); trusted.After(r.trusted) { // a renewal may overtake another one
		r.trusted = trusted
		r.setTimers()
	}
	return len(r.locks)
}

// failureIsNews reports whether to report a failed renewal: the first one, and then at most one every
// trouble.TellEvery.
func (r *renewals) failureIsNews() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
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
	least := (3 * took).Round(time.Millisecond)
	return fmt.Errorf("%w: connecting takes %v here, and the TTL of %v leaves %v for it; a TTL of %v would do",
		errLate, took.Round(time.Millisecond), r.TTL, left, least)
}

// pause waits for about the given time. It reports false, at once, when the lease ends.
func (ls *Lease) pause(pause time.Duration) bool {
	timer := time.NewTimer(jitter.Around(pause))
	defer timer.Stop()
	select {
	case <-ls.ended: // and with it everything that it held
		return false
	case <-timer.C:
		return true
	}
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
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := context.AfterFunc(r.keeper.Closing, func() { time.AfterFunc(conn.CloseTimeout, cancel) })
	defer stop()
	// If this fails, the row has expired, or soon will: nobody renews it any more.
	if !r.Orphans.keepNames(ctx, clock.Until(expiry)) {
		return
	}
	_ = dberr.Retry(ctx, clock.Until(expiry), func(ctx context.Context) error {
		return r.store.EndLease(ctx, r.ID)
	})
}
