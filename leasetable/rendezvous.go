package leasetable

import (
	"context"
	"sync"
)

// group is what TryAcquireAll's goroutines do together: each brings its part, or ends without one, and
// the first who came acts for all.
type rendezvous struct {
	full chan struct{} // closed when nobody is awaited any more

	mu      sync.Mutex
	awaited int        // guarded by mu: members that have neither come nor ended
	brought []*request // guarded by mu: by those who came, in that order
	left    bool       // guarded by mu: the first waits no longer
}

func newGroup(members int) *rendezvous {
	return &rendezvous{full: make(chan struct{}), awaited: members}
}

// member is one of them. Every member has to end.
type member struct {
	*rendezvous
	over bool // guarded by mu: it has come or ended
}

// end says that the member will not come, if it has not.
func (m *member) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle()
}

// settle reports whether the member was awaited until now. The caller holds mu.
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

// meet comes with a part. The first who came waits until the others have come, or have ended, or ctx has, and gets all who came until
// then, to act on them; the others get nothing, at once. One who comes again, or too late, is not awaited and goes on alone.
func (m *member) meet(ctx context.Context, req *request) (all []*request, awaited bool) {
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
	select {
	case <-m.full:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = true
	return m.brought, true
}
