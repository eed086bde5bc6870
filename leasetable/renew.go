package leasetable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/internal/trouble"
)

// endTimeout is how long a Locker that is being closed tries to tell the database.
const endTimeout = 2 * time.Second

// errUnused ends a term that holds nothing.
var errUnused = errors.New("the lease is not in use")

// keep renews the term every third of its TTL, whatever number of locks hang on it. It returns
// when the term has ended.
func (ls *lease) renewLoop() {
	defer ls.giveBack()
	defer ls.deleteRow()
	timer := time.NewTimer(ls.ttl/3 - time.Since(ls.began)) // began does not change any more
	defer timer.Stop()
	unused := time.NewTicker(idleTime / 4)
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
			timer.Reset(ls.ttl/3 - time.Since(began)) // on a slow network the answer took some of it
		}
	}
}

// crowdedTime is how long a lease is kept at least where others may have no connection.
const limitedTime = time.Second

// finishUnused ends a term that holds nothing and will not soon: it is retired, or was not used
// for some time, a TTL at most. Where the server has no connection left, others have their turn.
func (ls *lease) finishUnused() bool {
	ls.mu.Lock()
	spent := ls.retired || time.Since(ls.used) > min(ls.ttl, idleTime) || ls.store.limited() && time.Since(ls.began) > limitedTime
	unused := ls.claims == 0 && len(ls.locks) == 0 && spent && !slices.ContainsFunc(ls.orphans, (*orphan).pending)
	if unused {
		ls.retired = true // from here on no claim begins
	}
	ls.mu.Unlock()
	if unused {
		ls.finish(errUnused)
	}
	return unused
}

// giveBack closes the connection for renewals, if there are none any more.
func (ls *lease) giveBack() {
	l := ls.locker
	l.mu.Lock()
	last := len(l.all) == 0
	l.mu.Unlock()
	if !last {
		return
	}
	l.store.renewals.giveBack()
	if l.store.limited() {
		l.store.work.giveBack()
	}
}

// renew extends the lease. An error is no news of the lease, and the renewal is repeated until the
// deadline, at which the timer ends the term in any case.
func (ls *lease) renew() {
	ctx, cancel := ls.untilDeadline()
	defer cancel()
	for pause := firstPause; ; pause = longer(pause) {
		if ls.renewOnce(ctx) == nil || sleep(ctx, jitter(pause)) != nil {
			return
		}
	}
}

// renewNow renews the lease for a caller. The statement goes on when the caller leaves: its connection is
// that of all renewals.
func (ls *lease) renewNow(ctx context.Context) error {
	done := make(chan error, 1)
	err := ls.locker.start(func() { //nolint:contextcheck // for that reason
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

// renewOnce makes one attempt. Without an error the lease was extended, or the term has ended.
func (ls *lease) renewOnce(ctx context.Context) error {
	var there bool
	var changes int64
	limit, patience := ls.renewTimeouts()
	// The first sign of trouble is an answer that is late.
	late := time.AfterFunc(patience, ls.store.renewals.prepare)
	defer late.Stop()
	sent := clock.Now()
	err := once(ctx, limit, func(ctx context.Context) (err error) {
		there, changes, err = ls.store.renew(ctx, ls.id)
		return err
	})
	switch {
	case err != nil:
		if ls.failureIsNews() {
			ls.locker.events.RenewalFailed(ctx, clock.Since(sent), ls.held(), err)
		}
		return err
	case !there:
		ls.finish(fmt.Errorf("%w: its lease was ended by the database's clock or by somebody else", sqllock.ErrLost))
	default:
		ls.locker.events.Renewed(ctx, clock.Since(sent), ls.extend(sent))
		ls.verifyIfChanged(changeMark{changes, ls.store.renewals.latest.Load()})
	}
	return nil
}

// patience is how long an attempt to renew may take, and after what time of it another connection is opened for the next one. On a slow
// network the last renewal says what an answer takes.
func (ls *lease) renewTimeouts() (limit, patience time.Duration) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return max(min(ls.ttl/4, attemptTimeout), 3*ls.pace), max(ls.ttl/12, 2*ls.pace)
}

// extend moves the deadline after a renewal sent at the given time was confirmed. A process that
// was stopped meanwhile may be past the new one too. It returns how many locks that keeps.
func (ls *lease) extend(sent time.Time) (locks int) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.cause != nil {
		return 0
	}
	ls.pace, ls.failureTold = clock.Since(sent), time.Time{}
	if trusted := sent.Add(ls.ttl - ls.margin()); trusted.After(ls.trusted) { // two renewals may overtake each other
		ls.trusted = trusted
		ls.setTimers()
	}
	return len(ls.locks)
}

// failureIsNews reports whether a renewal that failed is to be told: the first one, and then one in a while.
func (ls *lease) failureIsNews() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.failureTold.IsZero() && time.Since(ls.failureTold) < trouble.TellEvery {
		return false
	}
	ls.failureTold = time.Now()
	return true
}

// held is how many locks hang on the term.
func (ls *lease) held() int {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return len(ls.locks)
}

// rest returns after about a pause whether the term goes on, and its Locker.
func (ls *lease) pause(pause time.Duration) bool {
	timer := time.NewTimer(jitter(pause))
	defer timer.Stop()
	select {
	case <-ls.ended: // and with it what it held
		return false
	case <-ls.locker.closing.Done():
		return false
	case <-timer.C:
		return true
	}
}

// deleteRow tells the database that the term is over, unless it ended because of the database.
// It goes on until the row would have expired: a stray may hang on it.
func (ls *lease) deleteRow() {
	ls.mu.Lock()
	told := errors.Is(ls.cause, sqllock.ErrLost) || errors.Is(ls.cause, sqllock.ErrExpired)
	expiry := ls.trusted.Add(ls.margin())
	ls.mu.Unlock()
	if told {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := context.AfterFunc(ls.locker.closing, func() { time.AfterFunc(endTimeout, cancel) })
	defer stop()
	// When this fails the row has expired, or soon will: nobody renews it any more.
	_ = retry(ctx, clock.Until(expiry), func(ctx context.Context) error {
		_, err := ls.store.change(ctx, &ls.store.renewals, endLease, ls.id)
		return err
	})
}
