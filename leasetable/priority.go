package leasetable

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/backoff"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

const (
	// announcedTime is for how long a noted waiter counts as waiting.
	announcedTime = 10 * time.Second
	// yieldTime is about how much ahead of the others the longest waiter is when it is woken.
	yieldTime = 20 * time.Millisecond
)

// errGone says that a name may not be held any more.
var errGone = errors.New("the name is perhaps not held any more")

// priority is the priority of a waiter among the waiters of other processes. The longest waiter is noted in the table.
// A release notifies it, and the other waiters yield to it.
type priority struct {
	since       int64     // by the database's clock, in microseconds since 1970
	announced   time.Time // when since was last written to the table
	unannounced bool      // since could not be written
	yielded     bool      // this process had the name just now, and yields to all other waiters
	absent      int64     // the since of a noted waiter that did not take the name when it could
}

// announce notes in the table that a waits for the name, unless a longer waiter is noted. The note is advisory, so an
// error does no harm. It returns errGone if the name may have been released since it was last read: its lock row was
// free, or locked. It does not return errGone twice in a row.
func (r *priority) announce(a *attempt) error {
	state := a.holding.State
	if r.since == 0 {
		r.since = state.ExpiresUS - state.RemainingUS
	}
	before := state.WaiterUS != 0 && state.WaiterUS < r.since
	known := state.WaiterUS == r.since && time.Since(r.announced) < announcedTime/2
	again := r.unannounced
	r.unannounced = false
	if state.LeaseID == nil || r.since == 0 || before || known {
		return nil
	}
	noted := false
	err := dberr.Once(a.ctx, dberr.AttemptTimeout, func(ctx context.Context) (err error) {
		noted, err = a.store.NoteWaiter(ctx, a.name, r.since, announcedTime)
		return err
	})
	if r.unannounced = err == nil && !noted; !r.unannounced {
		r.announced = time.Now()
		a.holding.WaiterUS = r.since
	} else if !again {
		return errGone
	}
	return nil
}

// announcedSince returns since when the table may say that this waiter waits, or 0.
func (r *priority) announcedSince() int64 {
	if r.announced.IsZero() {
		return 0
	}
	return r.since
}

// withdraw removes the note from the table. For a waiter that takes the name, the acquiring statement does that.
func (r *priority) withdraw(a *attempt) {
	if r.announcedSince() == 0 {
		return
	}
	_ = a.hand(func() { // if the Locker is closed, the note expires
		_ = dberr.Once(a.closing, dberr.AttemptTimeout, func(ctx context.Context) error {
			return a.store.RemoveWaiter(ctx, a.name, r.since)
		})
	})
}

// first reports whether, according to state, this is the longest waiter.
func (r *priority) first(state store.State) bool { return r.since != 0 && state.WaiterUS == r.since }

// yieldsTo reports whether, according to state, another waiter has waited longer.
func (r *priority) yieldsTo(state store.State) bool {
	longer := state.WaiterUS < r.since || r.since == 0 && r.yielded
	return longer && state.WaiterUS != 0 && state.WaiterUS != r.absent
}

// yield returns after the longest waiter has had time to hear that the name is free, or to poll. The pause is jittered,
// so that not all of the others poll at the same moment.
func (a *attempt) yield() error {
	_, grace := a.shares()
	return backoff.Sleep(a.ctx, grace+rand.N(yieldTime)) //nolint:gosec // jitter
}

// shares returns for how long a process may hand a name off in memory while another process waits for it, and for how
// long it then leaves the name to others, until they have heard of it or polled.
func (l *Locker) shares() (turnTime, grace time.Duration) {
	if l.store.Notifies() {
		return 25 * time.Millisecond, yieldTime / 2
	}
	return 50 * time.Millisecond, backoff.Last + backoff.Last/2
}

// yields says which names this process yields to others, and until when.
type yields struct {
	mu    sync.Mutex
	until map[string]time.Time // guarded by mu
}

// add makes this process yield a name for d, after it released the name and another process waits for it.
func (m *yields) add(name string, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if len(m.until) > 100 {
		for other, until := range m.until {
			if now.After(until) {
				delete(m.until, other)
			}
		}
	}
	if m.until == nil {
		m.until = make(map[string]time.Time)
	}
	m.until[name] = now.Add(d)
}

// wait returns when others have had their chance at the name, or ctx ends. It reports whether this process had to
// yield.
func (m *yields) wait(ctx context.Context, name string) (gaveWay bool, err error) {
	m.mu.Lock()
	until, found := m.until[name]
	delete(m.until, name)
	m.mu.Unlock()
	if !found || !time.Now().Before(until) {
		return found, nil
	}
	return true, backoff.Sleep(ctx, time.Until(until))
}
