package lease

import (
	"context"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/backoff"
)

// turnTime is for how long a process may hand a name off in memory while another process waits for it (I25).
const turnTime = 25 * time.Millisecond

const yieldQueue = time.Second

// yields says which names this process yields to others.
type yields struct {
	mu   sync.Mutex
	of   map[string]yield // guarded by mu
	most int              // guarded by mu: so many names are looked through for those that are over
}

// yield says until when this process leaves a name alone, and until when it goes to the server's queue first.
type yield struct{ rest, queue time.Time }

// To makes this process leave a name, which it had for some time, to others for a moment: the row says that they wait for it.
// They may poll, with pauses that follow the time since the name changed hands, or be about to stand in the server's queue.
// Then this process goes to the queue first (I25).
func (m *yields) To(name string, had time.Duration) {
	m.add(name, max(backoff.Last, min(had/50, backoff.Rarest))*3/2)
}

// QueueFor makes this process go to the server's queue first when it wants the name again: others stand there, and this
// process had the name just now (I25).
func (m *yields) QueueFor(name string) { m.add(name, 0) }

// add makes this process yield a name, which it has released.
func (m *yields) add(name string, rest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if len(m.of) > m.most {
		for other, y := range m.of {
			if now.After(y.queue) {
				delete(m.of, other)
			}
		}
		m.most = max(100, 2*len(m.of))
	}
	if m.of == nil {
		m.of = make(map[string]yield)
	}
	y := m.of[name]
	if until := now.Add(rest); until.After(y.rest) {
		y.rest = until
	}
	y.queue = now.Add(yieldQueue)
	m.of[name] = y
}

// Wait returns when others have had their chance at the name, or ctx ends (I25). It reports whether this process has to
// yield: to look at the row before it claims the name or, where there are turns, to stand in the server's queue.
func (m *yields) Wait(ctx context.Context, name string) (yields bool, err error) {
	m.mu.Lock()
	y := m.of[name]
	delete(m.of, name)
	m.mu.Unlock()
	yields = time.Now().Before(y.queue)
	if rest := time.Until(y.rest); rest > 0 {
		return yields, backoff.Sleep(ctx, rest)
	}
	return yields, nil
}
