package wait

import (
	"sync"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Stalled remembers, from one attempt to the next, since when leases were not renewed that have more left than their TTL:
// the database's clock was set back. Otherwise an attempt that does not wait for a TTL could never end them (I11).
type Stalled struct {
	mu     sync.Mutex
	leases map[string]stalled // guarded by mu, by id
}

// stalled is what was read of a lease, and when it was first read so.
type stalled struct {
	renewals, expiresUS int64
	since               time.Time
}

// mostStalled bounds the number of leases. When there are more, all are forgotten.
const mostStalled = 1000

// since returns since when the lease was not renewed, as far as it is known here.
func (m *Stalled) since(state store.State) time.Time {
	now := time.Now()
	if state.TTLUS == 0 || state.RemainingUS <= state.TTLUS {
		return now
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := string(state.LeaseID)
	s, known := m.leases[id]
	if known && s.renewals == state.Renewals && s.expiresUS == state.ExpiresUS {
		return s.since
	}
	if m.leases == nil || len(m.leases) >= mostStalled {
		m.leases = make(map[string]stalled)
	}
	m.leases[id] = stalled{state.Renewals, state.ExpiresUS, now}
	return now
}
