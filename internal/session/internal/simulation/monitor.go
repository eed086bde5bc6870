package simulation

import (
	"fmt"
	"slices"
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
func (h *held) live() bool { return h.Context().Err() == nil && !h.process.IsKilled() }

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
	granted   map[of][]grant                   // guarded by mu: of sessions that may still have the key
	interests map[at]*interest                 // guarded by mu
	closed    map[*session.Locker[string]]bool // guarded by mu: Lockers whose Close was called
	troubled  map[int]time.Time                // guarded by mu: when a fault or an event has met a process, or it could not connect
	broken    []string                         // guarded by mu: the invariants that were broken, with what happened
}

func newMonitor(plan *Plan) *monitor {
	return &monitor{
		plan: plan, began: time.Now(),
		locks: make(map[string][]*held), granted: make(map[of][]grant), interests: make(map[at]*interest),
		closed: make(map[*session.Locker[string]]bool), troubled: make(map[int]time.Time),
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
	m.troubled[process] = time.Now()
}

// isTroubled reports whether something was wrong with a process. The caller holds mu.
func (m *monitor) isTroubled(p *process) bool { return !m.troubled[p.number].IsZero() }

// changed checks a change on the server, which is locked.
func (m *monitor) changed(c memory.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case c.What == memory.Again:
		m.report("I40", "session no. %d of process %d took %s again", c.Session.ID, c.Session.Client, c.Key)
	case c.What == memory.Ended:
		m.ended(c)
	case isOfWaiter(c.Key):
	case c.What == memory.GivenBack:
		for _, h := range m.locks[c.Key] {
			if h.session == c.Session && h.live() && !m.hasAnother(h) {
				m.report("I1", "%s was given back while its user has %v", c.Key, h)
			}
		}
	case c.What == memory.Granted:
		m.note(c)
		for _, h := range m.locks[c.Key] {
			if h.session != c.Session && h.live() && !m.mayBelieve(h) && !m.hasAnother(h) {
				m.report("I1", "%s was granted to process %d while its user has %v", c.Key, c.Session.Client, h)
			}
		}
	}
}

// note notes that a session got a key. A statement can still give a key to a session that its client has closed. The caller
// holds mu.
func (m *monitor) note(c memory.Change) {
	if c.Session.Closed.Load() {
		return
	}
	k := of{c.Session.Locker, c.Key}
	m.granted[k] = slices.DeleteFunc(m.granted[k], func(g grant) bool { return g.session == c.Session || !m.mayBe(g.session, c.Key) })
	m.granted[k] = append(m.granted[k], grant{c.Session, time.Now()})
}

// ended checks the end of a session. The caller holds mu.
func (m *monitor) ended(c memory.Change) {
	if c.Reason.Excused() {
		m.troubled[c.Session.Client] = time.Now()
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

// hasAnother reports whether another session of the Locker may have the lock: one of them may be there for a caller that
// has left. The caller holds mu, and the server is locked.
func (m *monitor) hasAnother(h *held) bool {
	for _, g := range m.granted[of{h.locker, h.name}] {
		if g.session != h.session && m.mayBe(g.session, h.name) {
			h.session = g.session
			return true
		}
	}
	return false
}

// mayBe reports whether a client may believe that a session has a key: it has, or a moment ago it was ended by others than
// its client. The caller holds mu, and the server is locked.
func (m *monitor) mayBe(s *memory.Session, key string) bool {
	since, reason, over := s.HasEnded()
	if s.Closed.Load() {
		return false
	}
	return s.Holds(key) || over && reason.Excused() && time.Since(since) <= m.plan.bound()
}

// mayBelieve reports whether a user may still believe that it has a lock: its session holds the key, or a moment ago it
// was ended by others than its client. The caller holds mu, and the server is locked.
func (m *monitor) mayBelieve(h *held) bool {
	since, reason, over := h.session.HasEnded()
	if !over { // others may share it
		return h.shared && h.session.Holds(h.name)
	}
	return reason.Excused() && time.Since(since) <= m.plan.bound()
}

// has notes that a user has a lock.
func (m *monitor) has(h *held) {
	m.server.Locked(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !h.live() {
			return
		}
		g := m.latest(h.locker, h.name)
		if h.session = g.session; g.session == nil || !m.mayBe(g.session, h.name) && !m.hasAnother(h) {
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
		unasked := time.Since(m.troubled[h.process.number]) < 2*mostHandoffs // the last answer counts
		if since := m.server.WriterSince(h.name); m.plan.asks() && !unasked && h.shared && g.at.Before(since) && time.Since(since) > mostHandoffs {
			m.report("I48", "%v was joined, and another process has waited for all of it for %v", h, time.Since(since))
		}
		m.locks[h.name] = append(others, h)
	})
}

// latest returns when a Locker last got a key. The caller holds mu.
func (m *monitor) latest(locker any, name string) (g grant) {
	if all := m.granted[of{locker, name}]; len(all) > 0 {
		g = all[len(all)-1]
	}
	return g
}

// mostHandoffs is after what time a key goes through the server, or the server is asked for waiters, with the time that the
// answer is under way.
const mostHandoffs = 25 * time.Millisecond
