package leasetable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
)

// endTimeout is how long a Locker that is being closed tries to tell the database.
const endTimeout = 2 * time.Second

// errUnused ends a term that holds nothing.
var errUnused = errors.New("the lease is not in use")

// keep renews the term every third of its TTL, whatever number of locks hang on it. It returns
// when the term has ended.
func (t *term) keep() {
	defer t.deleteRow()
	timer := time.NewTimer(t.ttl / 3)
	defer timer.Stop()
	for {
		due := false
		select {
		case <-t.over:
			return
		case <-timer.C:
			due = true
		case <-t.wake:
		}
		if t.finishUnused() {
			return
		}
		if due {
			t.renew()
			timer.Reset(t.ttl / 3)
		}
	}
}

// finishUnused ends a term that holds nothing and will not soon: it is retired, or was not used
// for a TTL.
func (t *term) finishUnused() bool {
	t.mu.Lock()
	unused := t.claims == 0 && len(t.locks) == 0 && (t.retired || time.Since(t.used) > t.ttl) && !slices.ContainsFunc(t.strays, (*stray).pending)
	if unused {
		t.retired = true // from here on no claim begins
	}
	t.mu.Unlock()
	if unused {
		t.finish(errUnused)
	}
	return unused
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
	sent := time.Now()
	err := once(ctx, min(t.ttl/4, attemptTimeout), func(ctx context.Context) (err error) {
		there, changes, err = t.store.renew(ctx, t.id)
		return err
	})
	switch {
	case err != nil:
		return err
	case !there:
		t.finish(fmt.Errorf("%w: its lease was ended by the database's clock or by somebody else", sqllock.ErrLost))
	default:
		t.locker.events.Renewed(ctx, time.Since(sent), t.extend(sent))
		t.reviewIfChanged(news{changes, t.store.keep.opened.Load()})
	}
	return nil
}

// extend moves the deadline after a renewal sent at the given time was confirmed. A process that
// was stopped meanwhile may be past the new one too. It returns how many locks that keeps.
func (t *term) extend(sent time.Time) (locks int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return 0
	}
	if trusted := sent.Add(t.ttl - t.margin()); trusted.After(t.trusted) { // two renewals may overtake each other
		t.trusted = trusted
		t.setTimers()
	}
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
	_ = retry(ctx, time.Until(expiry), func(ctx context.Context) error {
		_, err := t.store.change(ctx, &t.store.keep, end, t.id)
		return err
	})
}
