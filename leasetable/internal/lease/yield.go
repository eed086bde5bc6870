package lease

import (
	"context"
	"sync"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/backoff"
)

// YieldTime is about how much ahead of the others the longest waiter is when it is woken.
const YieldTime = 20 * time.Millisecond

// Shares returns for how long a process may hand a name off in memory while another process waits for it, and for how
// long it then leaves the name to others, until they have heard of it or polled (I25).
func (k *Keeper) Shares() (turnTime, grace time.Duration) {
	if k.Store.Notifies() {
		return 25 * time.Millisecond, YieldTime / 2
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

// Wait returns when others have had their chance at the name, or ctx ends (I25). It reports whether this process had to
// yield.
func (m *yields) Wait(ctx context.Context, name string) (gaveWay bool, err error) {
	m.mu.Lock()
	until, found := m.until[name]
	delete(m.until, name)
	m.mu.Unlock()
	if !found || !time.Now().Before(until) {
		return found, nil
	}
	return true, backoff.Sleep(ctx, time.Until(until))
}
