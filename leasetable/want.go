package leasetable

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqllock/sqllock/schema"
)

const (
	// wantTime is how long the others believe that somebody waits who has said so.
	wantTime = 10 * time.Second
	// firstCome is what who has waited longest is ahead of the others.
	firstCome = 20 * time.Millisecond
)

// errGone says that a name is not held any more.
var errGone = errors.New("the name is not held any more")

// place is that of a waiter among those of other processes. Who has waited longest stands in the
// table, for a release to see, and for the others to give way to.
type place struct {
	since int64     // by the database's clock, in microseconds since 1970
	said  time.Time // when that was last written
}

// take has the table say that a waits for the name, unless one who has waited longer is known to. It
// is a hint that decides nothing: an error is no harm. It returns errGone if the name was released
// since it was last seen.
func (p *place) take(a *attempt) error {
	seen := a.still.sight
	if p.since == 0 {
		p.since = seen.ExpiresUS - seen.RemainingUS
	}
	before := seen.WantedUS != 0 && seen.WantedUS < p.since
	known := seen.WantedUS == p.since && time.Since(p.said) < wantTime/2
	if seen.LeaseID == nil || before || known {
		return nil
	}
	var rows int64
	err := once(a.ctx, attemptTimeout, func(ctx context.Context) (err error) {
		args := []any{[]byte(a.name), p.since, wantTime.Microseconds()}
		if a.store.dialect == schema.MySQL { // its placeholders have no numbers
			args = []any{p.since, p.since, wantTime.Microseconds(), []byte(a.name)}
		}
		rows, err = a.store.change(ctx, &a.store.work, want, args...)
		return err
	})
	if err == nil && rows == 0 {
		return errGone
	}
	p.said = time.Now()
	return nil
}

// behind reports whether somebody has waited longer, as a name was seen.
func (p *place) behind(seen sight) bool { return seen.WantedUS != 0 && seen.WantedUS < p.since }

// A process may pass a name on in memory for some time that another one waits for, and then leaves it to
// others until they have heard of it, or looked.
func (l *Locker) shares() (turnTime, grace time.Duration) {
	if l.dialect == schema.Postgres && !l.store.work.pooler.Load() {
		return 25 * time.Millisecond, firstCome / 2
	}
	return 100 * time.Millisecond, lastPause + lastPause/2
}

// manners is for which names this process lets others go first, and until when.
type manners struct {
	mu    sync.Mutex
	until map[string]time.Time // guarded by mu
}

// giveWay has this process leave a name, which it has released and another wants, to that for a time.
func (m *manners) giveWay(name string, d time.Duration) {
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

// wait returns when others have had their chance, or ctx ends.
func (m *manners) wait(ctx context.Context, name string) error {
	m.mu.Lock()
	until, found := m.until[name]
	delete(m.until, name)
	m.mu.Unlock()
	if !found || !time.Now().Before(until) {
		return nil
	}
	return sleep(ctx, time.Until(until))
}
