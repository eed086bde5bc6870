package leasetable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
)

// endTimeout bounds telling the database that a lease is over. When it fails, the row expires.
const endTimeout = 2 * time.Second

// errUnused ends a term that holds nothing.
var errUnused = errors.New("the lease is not in use")

// keep renews the term every third of its TTL, whatever number of locks hang on it, and cleans
// up behind lost answers. It returns when the term has ended.
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
		t.releaseStrays()
	}
}

// finishUnused ends a term that holds nothing and will not soon: it is retired, or was not used
// for a TTL.
func (t *term) finishUnused() bool {
	t.mu.Lock()
	unused := t.claims == 0 && len(t.locks) == 0 && (t.retired || time.Since(t.used) > t.ttl)
	if unused {
		t.retired = true // from here on no claim begins
	}
	t.mu.Unlock()
	if unused {
		t.finish(errUnused)
	}
	return unused
}

// renew extends the lease. Errors that may pass are retried until the deadline, at which the
// timer ends the term in any case.
func (t *term) renew() {
	ctx, cancel := t.context()
	defer cancel()
	stop := context.AfterFunc(t.locker.closing, cancel)
	defer stop()

	var sent time.Time
	var rows int64
	err := retry(ctx, func() (err error) {
		sent = time.Now()
		rows, err = t.store.change(ctx, &t.store.keep, renew, t.id)
		return err
	})
	switch {
	case err != nil && ctx.Err() == nil:
		t.finish(fmt.Errorf("%w: the lease cannot be renewed: %w", sqllock.ErrLost, err))
	case err == nil && rows == 0:
		t.finish(fmt.Errorf("%w: its lease was ended by the database's clock or by somebody else", sqllock.ErrLost))
	case err == nil:
		t.extend(sent)
	}
}

// extend moves the deadline after a renewal sent at the given time was confirmed. A process that
// was stopped meanwhile may be past the new one too.
func (t *term) extend(sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return
	}
	t.trusted = sent.Add(t.ttl - t.margin())
	t.deadline.Reset(time.Until(t.trusted))
}

// releaseStrays frees names that a lost answer may have left held. The statement with the lost
// answer may still be under way, so a name that is not held is looked at again at every
// renewal, until the term ends.
func (t *term) releaseStrays() {
	t.mu.Lock()
	strays := slices.Clone(t.strays)
	t.mu.Unlock()
	for _, name := range strays {
		ctx, cancel := context.WithTimeout(context.Background(), t.ttl/6)
		freed, err := t.store.change(ctx, &t.store.keep, disown, []byte(name), t.id)
		cancel()
		if err == nil && freed > 0 {
			t.mu.Lock()
			t.strays = slices.DeleteFunc(t.strays, func(stray string) bool { return stray == name })
			t.mu.Unlock()
		}
	}
}

// deleteRow tells the database that the term is over, unless it ended because of the database.
// Until then, or until it expires, the row keeps others out.
func (t *term) deleteRow() {
	t.mu.Lock()
	told := errors.Is(t.cause, sqllock.ErrLost) || errors.Is(t.cause, sqllock.ErrExpired)
	t.mu.Unlock()
	if told {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	// When this fails the row expires by itself: nobody renews it any more.
	_ = retry(ctx, func() error {
		_, err := t.store.change(ctx, &t.store.keep, end, t.id)
		return err
	})
}
