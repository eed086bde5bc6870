package sqllock

import (
	"context"
	"sync"
)

// group is what AcquireAll's goroutines do together: each brings its part, or ends without one, and
// the first who came acts for all.
type group struct {
	full chan struct{} // closed when nobody is awaited any more

	mu      sync.Mutex
	awaited int   // guarded by mu: members that have neither come nor ended
	brought []any // guarded by mu: by those who came, in that order
	left    bool  // guarded by mu: the first waits no longer
}

func newGroup(members int) *group {
	return &group{full: make(chan struct{}), awaited: members}
}

// member is one of them. Every member has to end.
type member struct {
	*group
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

// meet implements Options.Meet.
func (m *member) meet(ctx context.Context, part any) (all []any, awaited bool) {
	m.mu.Lock()
	if m.left || !m.settle() {
		m.mu.Unlock()
		return nil, false
	}
	m.brought = append(m.brought, part)
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
