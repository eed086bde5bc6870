package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
)

// held is a lock that a user was told it has.
type held struct {
	*leasetable.Lease
	process *process
	name    string
	how     holdKind
	began   time.Time // when its acquisition began
	sure    time.Time // until when the user was told that it surely lasts
	over    bool      // guarded by the monitor's mu: its user has begun to give it up
}

// live reports whether the user believes that it has the lock.
func (h *held) live() bool { return h.Context().Err() == nil && !h.process.IsKilled() }

func (h *held) String() string {
	return fmt.Sprintf("token %d of %s%s of process %d", h.Token(), holdNames[h.how], h.name, h.process.number)
}

// rise is when a name's token rose beyond a number.
type rise struct {
	token int64
	at    time.Time
}

// monitor checks the invariants. Its mu is locked after that of the server.
type monitor struct {
	began time.Time

	found atomic.Bool   // an invariant is broken
	freed chan struct{} // receives when a name is released, if somebody waits for that

	mu      sync.Mutex
	excuses                    // guarded by mu
	locks   map[string][]*held // guarded by mu: those that users have, by name
	told    map[string]int64   // guarded by mu: the highest token that a user was told, by name
	rises   map[string][]rise  // guarded by mu
	broken  []string           // guarded by mu: the invariants that were broken, with what happened
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

// highest returns the highest token of a name that a user was told.
func (m *monitor) highest(name string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.told[name]
}

// granted notes that a user has a lock. Before the acquisition the highest token of the name was floor.
func (m *monitor) granted(h *held, floor int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.failed.After(h.began) { // otherwise the failover may have forgotten the acquisition, and the token comes again
		if h.Token() <= floor {
			m.report("I12", "%v was acquired after token %d", h, floor)
		}
		m.told[h.name] = max(m.told[h.name], h.Token())
	}
	permits, limit := 1, 0
	if h.how == permit {
		limit = limitOfPermits
	}
	var others []*held
	for _, other := range m.locks[h.name] {
		if !other.live() {
			continue
		}
		others = append(others, other)
		if m.excused(other) || m.excused(h) || h.Context().Err() != nil {
			continue
		}
		if h.how == whole || other.how != h.how {
			m.report("I1, I30", "%v was acquired while its holder has %v", h, other)
		}
		permits++
	}
	if limit > 0 && permits > limit {
		m.report("I29", "%v was acquired: there are %d holders", h, permits)
	}
	m.locks[h.name] = append(others, h)
}

// changed checks a change of a row. The server is locked.
func (m *monitor) changed(c memory.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case c.Data && !c.Held:
		m.report("I13", "a guarded transaction wrote %s with token %d, which is not held any more", c.Name, c.After)
	case c.Data && c.Permits == 0 && c.After < m.told[c.Name]:
		m.report("I13", "a guarded transaction wrote %s with token %d after a user has token %d", c.Name, c.After, m.told[c.Name])
	case c.Data:
		if c.Permits == 0 && c.After < c.Before && m.failed.IsZero() {
			m.report("I13", "a guarded transaction wrote %s with token %d after token %d", c.Name, c.After, c.Before)
		}
	case c.After < c.Before:
		m.report("I12", "the token of %s fell from %d to %d", c.Name, c.Before, c.After)
	case c.Bumped && !m.undone:
		m.report("I32", "the token of %s, which is held, was bumped to %d", c.Name, c.After)
	case c.Both && !m.undone:
		m.report("I30", "%s has a lease and permits", c.Name)
	case c.Limit > 0 && int64(c.Permits) > c.Limit && !m.undone:
		m.report("I29", "%s has %d permits, with a limit of %d", c.Name, c.Permits, c.Limit)
	case c.Freed:
		select {
		case m.freed <- struct{}{}:
		default: // nobody waits for that
		}
	case c.After > c.Before:
		m.rises[c.Name] = append(m.rises[c.Name], rise{c.Before, time.Now()})
		if c.Granted {
			m.mustBeTold(c)
		}
	}
}

// mustBeTold checks that the holders of a name were told of their end before another holder has it. The caller holds mu.
func (m *monitor) mustBeTold(c memory.Change) {
	for _, h := range m.locks[c.Name] {
		if h.live() && !m.excused(h) && (h.how == whole || c.Permits == 0) && h.Token() <= c.Before {
			m.report("I1", "token %d of %s was granted while its holder has %v", c.After, c.Name, h)
		}
	}
}

// exceededBefore reports whether the token of the name was above that of h before a time.
func (m *monitor) exceededBefore(h *held, at time.Time) bool {
	for _, r := range m.rises[h.name] {
		if r.token >= h.Token() {
			return r.at.Before(at)
		}
	}
	return false
}

// check compares what a user believes of a lock with what the server has.
func (m *monitor) check(h *held, server *memory.Server) {
	remaining := h.Remaining()
	lasts, there := server.Lasts(h.name, h.Token())
	m.mu.Lock()
	defer m.mu.Unlock()
	if !h.live() || h.over || m.undeclared() || time.Since(m.forcedAt[h.name]) < m.longest {
		return
	}
	switch {
	case !there && m.prompt:
		m.report("I20", "the user believes that it has %v, and the server has not", h)
	case there && remaining > lasts:
		m.report("I3", "the user believes that %v lasts for %v, and its lease lasts for %v", h, remaining, lasts)
	}
}

// every returns the locks that users have.
func (m *monitor) every() (all []*held) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, locks := range m.locks {
		all = append(all, locks...)
	}
	return all
}

// promised notes that a lock surely lasts for d.
func (m *monitor) promised(h *held, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if sure := time.Now().Add(d); h.Context().Err() == nil && sure.After(h.sure) {
		h.sure = sure
	}
}

// ended checks why a lock has ended.
func (m *monitor) ended(h *held) {
	m.mu.Lock()
	defer m.mu.Unlock()
	cause := context.Cause(h.Context())
	switch {
	case errors.Is(cause, sqllock.ErrLost) && !m.excused(h):
		m.report("I3, I20", "%v was lost: %v", h, cause)
	case errors.Is(cause, sqllock.ErrExpired) && time.Now().Before(h.sure) && !m.undeclared():
		m.report("I3", "%v has expired %v before the time that was promised", h, time.Until(h.sure))
	}
}

// giveUp notes that a user gives a lock up.
func (m *monitor) giveUp(h *held) (wasLive bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h.over = true
	return h.Context().Err() == nil
}

// released checks the result of a release that began at a time.
func (m *monitor) released(h *held, wasLive bool, at time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.began.Before(m.heard()) { // its lease may be one that a failover forgot
		return
	}
	forced := !m.forcedAt[h.name].Before(h.began)
	switch {
	case err == nil && h.how == whole && !forced && m.exceededBefore(h, at):
		m.report("I21", "the release of %v says that it was held until then, but there was a higher token", h)
	case err == nil && !wasLive:
		m.report("I21", "the release of %v says that it was held until then, but its user had been told of its end", h)
	case errors.Is(err, sqllock.ErrLost) && wasLive && !forced && h.how == whole && !m.exceededBefore(h, time.Now()):
		m.report("I20, I21", "the release of %v says: %v", h, err)
	}
}

// forced notes that a name is released by force.
func (m *monitor) forced(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forcedAt[name] = time.Now()
}

// declare notes that promises are broken from now on.
func (m *monitor) declare(failover bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.declared = time.Now()
	if failover {
		m.failed = m.declared
		clear(m.told)
		clear(m.rises)
	}
}

// undo notes that releases, and ends of leases, may be undone: what was given back is there again, and nobody believes to
// have it.
func (m *monitor) undo() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.undone = true
}

// hasFailed reports whether there was a failover.
func (m *monitor) hasFailed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.failed.IsZero()
}

// noteTTL notes that a lease has this TTL.
func (m *monitor) noteTTL(ttl time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.longest = max(m.longest, ttl)
}
