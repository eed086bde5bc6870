package store

import "sync"

// metNames are names that this process has met, and that so are likely to have rows.
type metNames struct {
	mu    sync.Mutex
	names map[string]struct{} // guarded by mu
}

// add notes a name, and reports whether it was noted before. The notes are cleared when they are maxKnown.
func (m *metNames) add(name string) (before bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, before = m.names[name]; before {
		return true
	}
	if m.names == nil || len(m.names) >= maxKnown {
		m.names = make(map[string]struct{})
	}
	m.names[name] = struct{}{}
	return false
}
