package leasetable

import (
	"context"
	"sync"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// rendezvous collects the requests of the goroutines of one TryAcquireAll. Each member brings its request, or ends
// without one. The first member to arrive runs the requests of all.
type rendezvous struct {
	full chan struct{} // closed when no member is awaited any more

	mu      sync.Mutex
	awaited int           // guarded by mu: members that have neither arrived nor ended
	brought []*store.Call // guarded by mu: the requests of the members that arrived, in the order of arrival
	left    bool          // guarded by mu: the first member no longer waits
}

func newGroup(members int) *rendezvous {
	return &rendezvous{full: make(chan struct{}), awaited: members}
}

// member is one goroutine of a rendezvous. Every member must end.
type member struct {
	*rendezvous
	over bool // guarded by mu: it has arrived or ended
}

// end marks that the member will not arrive, unless it has arrived already.
func (m *member) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle()
}

// settle marks the member as arrived or ended. It reports whether the member was awaited until now. The caller holds
// mu.
func (m *member) settle() bool {
	if m.over {
		return false
	}
	m.over = true
	if m.awaited--; m.awaited == 0 {
		close(m.full)
	}
	return true
}

// meet brings a request. The first member waits until every other member has arrived or ended, or until half of the time of
// ctx is over: the rest is for the statement. It gets all requests that were brought until then, and runs them; the other
// members get none, at once. A member that arrives a second time, or too late, is not awaited: it runs its request itself.
func (m *member) meet(ctx context.Context, req *store.Call) (all []*store.Call, awaited bool) {
	m.mu.Lock()
	if m.left || !m.settle() {
		m.mu.Unlock()
		return nil, false
	}
	m.brought = append(m.brought, req)
	first := len(m.brought) == 1
	m.mu.Unlock()
	if !first {
		return nil, true
	}
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	select {
	case <-m.full:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = true
	return m.brought, true
}
