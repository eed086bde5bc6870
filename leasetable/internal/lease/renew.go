package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/internal/trouble"
	"github.com/sqllock/sqllock/leasetable/internal/backoff"
	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// errUnused is the cause of the end of a lease that holds nothing.
var errUnused = errors.New("the lease is not in use")

// renewLoop renews the lease every third of its TTL, however many locks it holds. It returns when the lease has ended.
func (ls *Lease) renewLoop() {
	defer ls.giveBack()
	defer ls.deleteRow()
	timer := time.NewTimer(ls.TTL/3 - time.Since(ls.began)) // began no longer changes
	defer timer.Stop()
	unused := time.NewTicker(conn.IdleTime / 4)
	defer unused.Stop()
	for {
		due := false
		select {
		case <-ls.ended:
			return
		case <-timer.C:
			due = true
		case <-unused.C:
		case <-ls.wake:
		}
		if ls.finishUnused() {
			return
		}
		if due {
			began := time.Now()
			ls.renew()
			timer.Reset(ls.TTL/3 - time.Since(began)) // on a slow network the renewal took some of that time
		}
	}
}

// limitedTime is the minimum time for which a lease is kept while other processes may get no connection.
const limitedTime = time.Second

// finishUnused ends a lease that holds nothing and will not be used soon: it is retired, or has not been used for
// IdleTime or, if that is less, for a TTL (I15). While the server has no connection left, limitedTime after the start
// of the lease suffices, so that other processes get the connection. It reports whether the lease has ended.
func (ls *Lease) finishUnused() bool {
	ls.mu.Lock()
	spent := ls.retired || time.Since(ls.used) > min(ls.TTL, conn.IdleTime) || ls.store.Limited() && time.Since(ls.began) > limitedTime
	unused := ls.claims == 0 && len(ls.locks) == 0 && spent && !slices.ContainsFunc(ls.orphans.list, (*orphan).pending)
	if unused {
		ls.retired = true // from here on no claim begins
	}
	ls.mu.Unlock()
	if unused {
		ls.finish(errUnused)
	}
	return unused
}

// giveBack closes the connection for renewals if no lease is left.
func (ls *Lease) giveBack() {
	l := ls.keeper
	l.mu.Lock()
	last := len(l.all) == 0
	l.mu.Unlock()
	if !last {
		return
	}
	l.Store.GiveBack()
}

// renew extends the lease. An error says nothing about the lease, so renew tries again until the deadline, when the
// timer ends the lease in any case.
func (ls *Lease) renew() {
	ctx, cancel := ls.untilDeadline()
	defer cancel()
	for pause := backoff.First; ; pause = backoff.Longer(pause) {
		if ls.renewOnce(ctx) == nil || backoff.Sleep(ctx, backoff.Jitter(pause)) != nil {
			return
		}
	}
}

// RenewNow renews the lease for a caller. The statement goes on when the caller leaves, because all renewals share its
// connection.
func (ls *Lease) RenewNow(ctx context.Context) error {
	done := make(chan error, 1)
	err := ls.keeper.Start(func() { //nolint:contextcheck // the statement outlives the caller
		ctx, cancel := ls.untilDeadline()
		defer cancel()
		done <- ls.renewOnce(ctx)
	})
	if err != nil {
		return err
	}
	select {
	case err = <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// renewOnce makes one attempt to renew. It returns nil if the lease was extended, or has ended. If the row is gone it
// ends every lock of the lease (I20).
func (ls *Lease) renewOnce(ctx context.Context) error {
	var there bool
	var changes int64
	limit, patience := ls.renewTimeouts()
	// A late answer is the first sign of trouble: another connection is opened for the next attempt.
	late := time.AfterFunc(patience, ls.store.PrepareRenewal)
	defer late.Stop()
	sent := clock.Now()
	err := dberr.Once(ctx, limit, func(ctx context.Context) (err error) {
		there, changes, err = ls.store.Renew(ctx, ls.ID)
		return err
	})
	switch {
	case err != nil:
		if ls.failureIsNews() {
			ls.keeper.events.RenewalFailed(ctx, clock.Since(sent), ls.held(), err)
		}
		return err
	case !there:
		ls.finish(fmt.Errorf("%w: its lease was ended by the database's clock or by somebody else", sqllock.ErrLost))
	default:
		ls.keeper.events.Renewed(ctx, clock.Since(sent), ls.extend(sent))
		ls.verifyIfChanged(changeMark{changes, ls.store.RenewalConnection()})
	}
	return nil
}

// renewTimeouts returns how long an attempt to renew may take, and after what time another connection is opened for the
// next attempt. On a slow network both follow the duration of the last renewal.
func (ls *Lease) renewTimeouts() (limit, patience time.Duration) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return max(min(ls.TTL/4, dberr.AttemptTimeout), 3*ls.pace), max(ls.TTL/12, 2*ls.pace)
}

// extend moves the deadline after a renewal that was sent at the given time was confirmed (I3). If the process was
// stopped meanwhile, the new deadline may have passed, too. It returns how many locks the renewal keeps.
func (ls *Lease) extend(sent time.Time) (locks int) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.cause != nil {
		return 0
	}
	ls.pace, ls.failureTold = clock.Since(sent), time.Time{}
	if trusted := sent.Add(ls.TTL - ls.margin()); trusted.After(ls.trusted) { // a renewal may overtake another one
		ls.trusted = trusted
		ls.setTimers()
	}
	return len(ls.locks)
}

// failureIsNews reports whether to report a failed renewal: the first one, and then at most one every
// trouble.TellEvery.
func (ls *Lease) failureIsNews() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.failureTold.IsZero() && time.Since(ls.failureTold) < trouble.TellEvery {
		return false
	}
	ls.failureTold = time.Now()
	return true
}

// held returns how many locks the lease holds.
func (ls *Lease) held() int {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return len(ls.locks)
}

// pause waits for about the given time. It reports false, at once, when the lease ends or its Locker is closed.
func (ls *Lease) pause(pause time.Duration) bool {
	timer := time.NewTimer(backoff.Jitter(pause))
	defer timer.Stop()
	select {
	case <-ls.ended: // and with it everything that it held
		return false
	case <-ls.keeper.Closing.Done():
		return false
	case <-timer.C:
		return true
	}
}

// deleteRow deletes the lease row, unless the lease was lost or has expired. It retries until the row would have
// expired, because the row may still hold an orphan (I15).
func (ls *Lease) deleteRow() {
	ls.mu.Lock()
	told := errors.Is(ls.cause, sqllock.ErrLost) || errors.Is(ls.cause, sqllock.ErrExpired)
	expiry := ls.trusted.Add(ls.margin())
	ls.mu.Unlock()
	if told {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := context.AfterFunc(ls.keeper.Closing, func() { time.AfterFunc(conn.CloseTimeout, cancel) })
	defer stop()
	// If this fails, the row has expired, or soon will: nobody renews it any more.
	_ = dberr.Retry(ctx, clock.Until(expiry), func(ctx context.Context) error {
		return ls.store.EndLease(ctx, ls.ID)
	})
}
