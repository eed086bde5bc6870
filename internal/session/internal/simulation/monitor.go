package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/internal/memory"
)

// held is a lock that a user was told it has.
type held struct {
	sqllock.Lock
	process *process
	locker  *session.Locker[string]
	name    string
	shared  bool
	session *memory.Session // guarded by the monitor's mu: it has the key, or had it when the user was told
	over    bool            // guarded by the monitor's mu: its user has begun to release it
}

// live reports whether the user believes that it has the lock.
func (h *held) live() bool { return h.Context().Err() == nil && !h.process.isKilled() }

func (h *held) String() string {
	return fmt.Sprintf("%s of process %d", nameOf(h.name, h.shared), h.process.number)
}

func nameOf(name string, shared bool) string {
	if shared {
		return "a share of " + name
	}
	return name
}

// at is a name in a process.
type at struct {
	process int
	name    string
}

// interest is who in a process wants or has a name.
type interest struct {
	users  int       // between the call of an acquisition and the end of the release
	having int       // those of them that got it, or did not get it
	since  time.Time // when the first of the others came, or the last one of them got it
	left   time.Time // when the last of them left
}

// of is a name and a Locker.
type of struct {
	locker any
	name   string
}

// grant is when a session got a key.
type grant struct {
	session *memory.Session
	at      time.Time
}

// monitor checks the invariants. Its mu is locked after that of the server.
type monitor struct {
	plan   *Plan
	server *memory.Server
	began  time.Time
	found  atomic.Bool // an invariant is broken

	mu        sync.Mutex
	locks     map[string][]*held               // guarded by mu: those that users have, by name
	granted   map[of]grant                     // guarded by mu: the latest one
	interests map[at]*interest                 // guarded by mu
	closed    map[*session.Locker[string]]bool // guarded by mu: Lockers whose Close was called
	troubled  map[int]bool                     // guarded by mu: processes that a fault or an event has met
	broken    []string                         // guarded by mu: the invariants that were broken, with what happened
}

func newMonitor(plan *Plan) *monitor {
	return &monitor{
		plan: plan, began: time.Now(),
		locks: make(map[string][]*held), granted: make(map[of]grant), interests: make(map[at]*interest),
		closed: make(map[*session.Locker[string]]bool), troubled: make(map[int]bool),
	}
}

// report notes that an invariant is broken. The caller holds mu.
func (m *monitor) report(invariant, format string, args ...any) {
	m.found.Store(true)
	m.broken = append(m.broken, fmt.Sprintf("%s at %v: %s", invariant, time.Since(m.began), fmt.Sprintf(format, args...)))
}

func (m *monitor) fail(invariant, format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.report(invariant, format, args...)
}

// trouble notes that a fault or an event has met a process.
func (m *monitor) trouble(process int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.troubled[process] = true
}

// changed checks a change on the server, which is locked.
func (m *monitor) changed(c memory.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case c.What == memory.Again:
		m.report("I40", "session no. %d of process %d took %s again", c.Session.ID, c.Session.Client, c.Key)
	case c.What == memory.Ended:
		m.ended(c)
	case isGate(c.Key):
	case c.What == memory.GivenBack:
		for _, h := range m.locks[c.Key] {
			if h.session == c.Session && h.live() && !m.hasAnother(h) {
				m.report("I1", "%s was given back while its user has %v", c.Key, h)
			}
		}
	case c.What == memory.Granted:
		m.note(c)
		for _, h := range m.locks[c.Key] {
			if h.session != c.Session && h.live() && !m.mayBelieve(h) {
				m.report("I1", "%s was granted to process %d while its user has %v", c.Key, c.Session.Client, h)
			}
		}
	}
}

// note notes that a session got a key. A statement can still give a key to a session that its client has closed. The caller
// holds mu.
func (m *monitor) note(c memory.Change) {
	if !c.Session.Closed.Load() {
		m.granted[of{c.Session.Locker, c.Key}] = grant{c.Session, time.Now()}
	}
}

// ended checks the end of a session. The caller holds mu.
func (m *monitor) ended(c memory.Change) {
	if c.Reason.Excused() {
		m.troubled[c.Session.Client] = true
		return
	}
	for _, locks := range m.locks {
		for _, h := range locks {
			if h.session == c.Session && h.live() && !m.hasAnother(h) {
				m.report("I3, I42", "a session ended (%v) while its user has %v", c.Reason, h)
			}
		}
	}
}

// hasAnother reports whether another session of the Locker has the share: one of them may be there for a caller that has
// left. The caller holds mu, and the server is locked.
func (m *monitor) hasAnother(h *held) bool {
	if !h.shared {
		return false
	}
	for _, k := range m.server.Held() {
		if k.Key == h.name && !k.Waits && k.Session.Locker == h.locker && k.Session != h.session && !k.Session.Closed.Load() {
			h.session = k.Session
			return true
		}
	}
	return false
}

// mayBelieve reports whether a user may still believe that it has a lock: its session holds the key, or a moment ago it
// was ended by others than its client. The caller holds mu, and the server is locked.
func (m *monitor) mayBelieve(h *held) bool {
	since, reason, over := h.session.HasEnded()
	if !over { // others may share it
		return h.shared && h.session.Holds(h.name)
	}
	return reason.Excused() && time.Since(since) <= m.bound()
}

// bound is how long after the end of a session its holders are told at the latest.
func (m *monitor) bound() time.Duration {
	const soon = 100 * time.Millisecond
	switch {
	case !m.plan.prompt():
		return m.plan.TTL * 5 / 6
	case m.plan.Kind.watches && !m.plan.Kind.blink:
		return soon
	}
	return min(m.plan.TTL/3, m.plan.Kind.heartbeat()) + soon
}

// has notes that a user has a lock.
func (m *monitor) has(h *held) {
	m.server.Locked(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !h.live() {
			return
		}
		g := m.granted[of{h.locker, h.name}]
		if h.session = g.session; g.session == nil || !g.session.Holds(h.name) && !m.hasAnother(h) && !m.mayBelieve(h) {
			m.report("I20", "the user was told that it has %v, and the server says no", h)
			return
		}
		var others []*held
		for _, other := range m.locks[h.name] {
			if !other.live() {
				continue
			}
			others = append(others, other)
			if (!h.shared || !other.shared) && (other.session == h.session || !m.mayBelieve(other) && !m.mayBelieve(h)) {
				m.report("I1", "%v was acquired while its holder has %v", h, other)
			}
		}
		if since := time.Since(g.at); m.plan.prompt() && !h.shared && since > mostHandoffs {
			m.report("I46", "%v was handed over %v after the server granted it", h, since)
		}
		m.locks[h.name] = append(others, h)
	})
}

// mostHandoffs is after what time a key goes through the server, with the time that its answer is under way.
const mostHandoffs = 25 * time.Millisecond

// ending checks why a lock has ended.
func (m *monitor) ending(h *held) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch cause := context.Cause(h.Context()); {
	case h.process.isKilled():
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
	case !m.troubled[h.process.number]:
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
	case err != nil && wasLive && !m.troubled[h.process.number] && !m.closed[h.locker]:
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
