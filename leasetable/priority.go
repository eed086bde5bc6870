package leasetable

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sqllock/sqllock/schema"
)

const (
	// wantTime is how long the others believe that somebody waits who has said so.
	announcedTime = 10 * time.Second
	// firstCome is about how much who has waited longest, and is woken, is ahead of the others.
	yieldTime = 20 * time.Millisecond
)

// errGone says that a name is perhaps not held any more.
var errGone = errors.New("the name is perhaps not held any more")

// rank is that of a waiter among those of other processes. Who has waited longest stands in the
// table, for a release to see, and for the others to give way to.
type priority struct {
	since       int64     // by the database's clock, in microseconds since 1970
	announced   time.Time // when that was last written
	unannounced bool      // it could not be written
	yielded     bool      // this process had the name just now, and is behind all the others
	absent      int64     // since when the one waits, as the table says, who did not take the name when it had the time to
}

// take has the table say that a waits for the name, unless one who has waited longer is known to. It
// is a hint that decides nothing: an error is no harm. It returns errGone if the name may have been released
// since it was last seen: its row was free, or locked by somebody. It does not do so twice in a row.
func (r *priority) announce(a *attempt) error {
	state := a.holding.lockState
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
	var rows int64
	err := once(a.ctx, attemptTimeout, func(ctx context.Context) (err error) {
		args := []any{[]byte(a.name), r.since, announcedTime.Microseconds()}
		if a.store.dialect == schema.MySQL { // its placeholders have no numbers
			args = []any{[]byte(a.name), r.since, r.since, announcedTime.Microseconds()}
		}
		rows, err = a.store.change(ctx, &a.store.work, noteWaiter, args...)
		return err
	})
	if r.unannounced = err == nil && rows == 0; !r.unannounced {
		r.announced = time.Now()
		a.holding.WaiterUS = r.since
	} else if !again {
		return errGone
	}
	return nil
}

// noted is since when the table may say that this one waits, or 0.
func (r *priority) announcedSince() int64 {
	if r.announced.IsZero() {
		return 0
	}
	return r.since
}

// leave has the table say so no more. Who takes the name does so with the same statement.
func (r *priority) withdraw(a *attempt) {
	if r.announcedSince() == 0 {
		return
	}
	_ = a.hand(func() { // of a Locker that is closed it ends by itself
		_ = once(a.closing, attemptTimeout, func(ctx context.Context) error {
			_, err := a.store.change(ctx, &a.store.work, removeWaiter, []byte(a.name), r.since)
			return err
		})
	})
}

// first reports whether nobody has waited longer, as a name was seen.
func (r *priority) first(state lockState) bool { return r.since != 0 && state.WaiterUS == r.since }

// behind reports whether somebody has waited longer, as a name was seen.
func (r *priority) yieldsTo(state lockState) bool {
	longer := state.WaiterUS < r.since || r.since == 0 && r.yielded
	return longer && state.WaiterUS != 0 && state.WaiterUS != r.absent
}

// stepAside returns when who has waited longest has heard that the name is free, or looked. Of the others not everybody
// looks at the same moment.
func (a *attempt) yield() error {
	_, grace := a.shares()
	return sleep(a.ctx, grace+rand.N(yieldTime)) //nolint:gosec // jitter
}

// A process may pass a name on in memory for some time that another one waits for, and then leaves it to
// others until they have heard of it, or looked.
func (l *Locker) shares() (turnTime, grace time.Duration) {
	if l.dialect == schema.Postgres && !l.store.work.pooler.Load() {
		return 25 * time.Millisecond, yieldTime / 2
	}
	return 50 * time.Millisecond, lastPause + lastPause/2
}

// manners is for which names this process lets others go first, and until when.
type yields struct {
	mu    sync.Mutex
	until map[string]time.Time // guarded by mu
}

// giveWay has this process leave a name, which it has released and another wants, to that for a time.
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

// wait returns when others have had their chance, or ctx ends, and reports whether there was one to be had.
func (m *yields) wait(ctx context.Context, name string) (gaveWay bool, err error) {
	m.mu.Lock()
	until, found := m.until[name]
	delete(m.until, name)
	m.mu.Unlock()
	if !found || !time.Now().Before(until) {
		return found, nil
	}
	return true, sleep(ctx, time.Until(until))
}
