package lease

import (
	"context"
	"sync"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/backoff"
)

// turnTime is for how long a process may hand a name off in memory while another process waits for it (I25).
const turnTime = 25 * time.Millisecond

// YieldTo makes this process leave a name to others for a while: they wait for it, and this process had it just now. It
// then waits for its turn or, where there are no turns, until the others have polled (I25).
func (k *Keeper) YieldTo(name string) {
	d := backoff.Last + backoff.Last/2
	if k.Store.HasTurns() {
		d = time.Second
	}
	k.Yields.add(name, d)
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

// Wait returns when others have had their chance at the name, or ctx ends (I25). It reports whether this process has to
// yield. Where there are turns, the turn is that chance.
func (m *yields) Wait(ctx context.Context, name string, turns bool) (yields bool, err error) {
	m.mu.Lock()
	until, found := m.until[name]
	delete(m.until, name)
	m.mu.Unlock()
	switch {
	case !found, !time.Now().Before(until):
		return found && !turns, nil
	case turns:
		return true, nil
	}
	return true, backoff.Sleep(ctx, time.Until(until))
}
