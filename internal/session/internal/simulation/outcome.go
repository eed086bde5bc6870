package simulation

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// ending checks why a lock has ended.
func (m *monitor) ending(h *held) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch cause := context.Cause(h.Context()); {
	case h.process.IsKilled():
	case errors.Is(cause, sqllock.ErrReleased):
		if !h.over {
			m.report("I48", "%v ended as released, and its user has not released it", h)
		}
	case errors.Is(cause, sqllock.ErrClosed):
		if !m.closed[h.locker] {
			m.report("I42", "%v ended with a Locker that is not closed", h)
		}
	case !errors.Is(cause, sqllock.ErrLost):
		m.report("I42", "%v ended with %v", h, cause)
	case strings.Contains(cause.Error(), "the caller who ran a statement left"):
		m.report("I44", "%v was lost because another caller left", h)
	case !m.isTroubled(h.process):
		m.report("I42", "%v was lost, and nothing was wrong: %v", h, cause)
	}
}

// releases notes that a user begins to release a lock, and returns whether it still believed that it had it.
func (m *monitor) releases(h *held) (wasLive bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h.over = true
	return h.Context().Err() == nil
}

// released checks the result of a release.
func (m *monitor) released(h *held, wasLive bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil && !wasLive:
		m.report("I20", "the release of %v says that it was held until then, but its user had been told of its end", h)
	case err != nil && wasLive && !m.isTroubled(h.process) && !m.closed[h.locker]:
		m.report("I20", "the release of %v failed, and nothing was wrong: %v", h, err)
	}
}

// closes notes that a Locker is being closed.
func (m *monitor) closes(l *session.Locker[string]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed[l] = true
}

// isClosed checks what a Locker leaves that is closed.
func (m *monitor) isClosed(l *session.Locker[string], took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, locks := range m.locks {
		for _, h := range locks {
			if h.locker == l && h.Context().Err() == nil {
				m.report("I42", "%v outlives its Locker", h)
			}
		}
	}
	if m.plan.prompt() && took > mostClose {
		m.report("I42", "Close took %v", took)
	}
}

// mostClose is more than Close gives a statement.
const mostClose = 1500 * time.Millisecond
