package leasetable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/clock"
)

// endTimeout is how long a Locker that is being closed tries to tell the database.
const endTimeout = 2 * time.Second

// errUnused ends a term that holds nothing.
var errUnused = errors.New("the lease is not in use")

// keep renews the term every third of its TTL, whatever number of locks hang on it. It returns
// when the term has ended.
func (t *term) keep() {
	defer t.giveBack()
	defer t.deleteRow()
	timer := time.NewTimer(t.ttl/3 - time.Since(t.began)) // began does not change any more
	defer timer.Stop()
	unused := time.NewTicker(idleTime / 4)
	defer unused.Stop()
	for {
		due := false
		select {
		case <-t.over:
			return
		case <-timer.C:
			due = true
		case <-unused.C:
		case <-t.wake:
		}
		if t.finishUnused() {
			return
		}
		if due {
			began := time.Now()
			t.renew()
			timer.Reset(t.ttl/3 - time.Since(began)) // on a slow network the answer took some of it
		}
	}
}

// crowdedTime is how long a lease is kept at least where others may have no connection.
const crowdedTime = time.Second

// finishUnused ends a term that holds nothing and will not soon: it is retired, or was not used
// for some time, a TTL at most. Where the server has no connection left, others have their turn.
func (t *term) finishUnused() bool {
	t.mu.Lock()
	spent := t.retired || time.Since(t.used) > min(t.ttl, idleTime) || t.store.lacks() && time.Since(t.began) > crowdedTime
	unused := t.claims == 0 && len(t.locks) == 0 && spent && !slices.ContainsFunc(t.strays, (*stray).pending)
	if unused {
		t.retired = true // from here on no claim begins
	}
	t.mu.Unlock()
	if unused {
		t.finish(errUnused)
	}
	return unused
}

// giveBack closes the connection for renewals, if there are none any more.
func (t *term) giveBack() {
	l := t.locker
	l.mu.Lock()
	last := len(l.all) == 0
	l.mu.Unlock()
	if !last {
		return
	}
	l.store.keep.giveBack()
	if l.store.lacks() {
		l.store.work.giveBack()
	}
}

// renew extends the lease. An error is no news of the lease, and the renewal is repeated until the
// deadline, at which the timer ends the term in any case.
func (t *term) renew() {
	ctx, cancel := t.context()
	defer cancel()
	for pause := firstPause; ; pause = longer(pause) {
		if t.renewOnce(ctx) == nil || sleep(ctx, jitter(pause)) != nil {
			return
		}
	}
}

// renewNow renews the lease for a caller. The statement goes on when the caller leaves: its connection is
// that of all renewals.
func (t *term) renewNow(ctx context.Context) error {
	done := make(chan error, 1)
	err := t.locker.start(func() { //nolint:contextcheck // for that reason
		ctx, cancel := t.context()
		defer cancel()
		done <- t.renewOnce(ctx)
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
func (t *term) renewOnce(ctx context.Context) error {
	var there bool
	var changes int64
	limit, patience := t.patience()
	// The first sign of trouble is an answer that is late.
	trouble := time.AfterFunc(patience, t.store.keep.prepare)
	defer trouble.Stop()
	sent := clock.Now()
	err := once(ctx, limit, func(ctx context.Context) (err error) {
		there, changes, err = t.store.renew(ctx, t.id)
		return err
	})
	switch {
	case err != nil:
		t.locker.events.RenewalFailed(ctx, clock.Since(sent), t.held(), err)
		return err
	case !there:
		t.finish(fmt.Errorf("%w: its lease was ended by the database's clock or by somebody else", sqllock.ErrLost))
	default:
		t.locker.events.Renewed(ctx, clock.Since(sent), t.extend(sent))
		t.reviewIfChanged(news{changes, t.store.keep.latest.Load()})
	}
	return nil
}

// patience is how long an attempt to renew may take, and after what time of it another connection is opened for the next one. On a slow
// network the last renewal says what an answer takes.
func (t *term) patience() (limit, patience time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(min(t.ttl/4, attemptTimeout), 3*t.pace), max(t.ttl/12, 2*t.pace)
}

// extend moves the deadline after a renewal sent at the given time was confirmed. A process that
// was stopped meanwhile may be past the new one too. It returns how many locks that keeps.
func (t *term) extend(sent time.Time) (locks int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return 0
	}
	t.pace = clock.Since(sent)
	if trusted := sent.Add(t.ttl - t.margin()); trusted.After(t.trusted) { // two renewals may overtake each other
		t.trusted = trusted
		t.setTimers()
	}
	return len(t.locks)
}

// held is how many locks hang on the term.
func (t *term) held() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.locks)
}

// rest returns after about a pause whether the term goes on, and its Locker.
func (t *term) rest(pause time.Duration) bool {
	timer := time.NewTimer(jitter(pause))
	defer timer.Stop()
	select {
	case <-t.over: // and with it what it held
		return false
	case <-t.locker.closing.Done():
		return false
	case <-timer.C:
		return true
	}
}

// deleteRow tells the database that the term is over, unless it ended because of the database.
// It goes on until the row would have expired: a stray may hang on it.
func (t *term) deleteRow() {
	t.mu.Lock()
	told := errors.Is(t.cause, sqllock.ErrLost) || errors.Is(t.cause, sqllock.ErrExpired)
	expiry := t.trusted.Add(t.margin())
	t.mu.Unlock()
	if told {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := context.AfterFunc(t.locker.closing, func() { time.AfterFunc(endTimeout, cancel) })
	defer stop()
	// When this fails the row has expired, or soon will: nobody renews it any more.
	_ = retry(ctx, clock.Until(expiry), func(ctx context.Context) error {
		_, err := t.store.change(ctx, &t.store.keep, end, t.id)
		return err
	})
}
