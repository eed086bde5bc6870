package memory

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// Session is a session on the server.
type Session struct {
	ID     int64
	Client int         // who opened it
	Locker any         // for the client: which of its Lockers has opened it
	Closed atomic.Bool // for the client: it has closed the connection

	server *Server
	over   chan struct{} // closed when the session has ended

	ttl    time.Duration  // guarded by server.mu: how long it may be idle
	idle   *time.Timer    // guarded by server.mu: ends it
	busy   bool           // guarded by server.mu: a statement runs
	gone   bool           // guarded by server.mu: its client has closed the connection, and it has not noticed yet
	keys   map[string]int // guarded by server.mu: how often it has each key
	waits  string         // guarded by server.mu: the key that it waits for
	ended  time.Time      // guarded by server.mu
	reason Reason         // guarded by server.mu: why it has ended
}

// Over is closed when the session has ended.
func (e *Session) Over() <-chan struct{} { return e.over }

// HasEnded returns when and why the session has ended, and whether it has. The caller has locked the server.
func (e *Session) HasEnded() (time.Time, Reason, bool) { return e.ended, e.reason, !e.ended.IsZero() }

// Holds reports whether the session holds a key. The caller has locked the server.
func (e *Session) Holds(name string) bool { return e.keys[name] > 0 }

// timeout ends a session that was idle for its TTL.
func (e *Session) timeout() {
	e.server.mu.Lock()
	defer e.server.mu.Unlock()
	if frozen := time.Until(e.server.frozen); frozen > 0 {
		e.idle.Reset(frozen)
		return
	}
	if !e.busy {
		e.end(Idle)
	}
}

// end ends the session. The caller holds mu.
func (e *Session) end(reason Reason) {
	if !e.ended.IsZero() {
		return
	}
	s := e.server
	e.ended, e.reason = time.Now(), reason
	e.idle.Stop()
	delete(s.sessions, e)
	close(e.over)
	s.changed(Change{What: Ended, Session: e, Reason: reason})
	if e.waits != "" {
		s.leave(e, e.waits)
	}
	for _, name := range slices.Sorted(maps.Keys(e.keys)) {
		delete(e.keys, name)
		s.free(e, name)
	}
}

// End ends the session.
func (e *Session) End(reason Reason) {
	e.server.mu.Lock()
	defer e.server.mu.Unlock()
	e.end(reason)
}

// Leave tells the session that its client has closed the connection. During a statement the session does not notice
// until that ends.
func (e *Session) Leave() {
	e.server.mu.Lock()
	defer e.server.mu.Unlock()
	if e.busy {
		e.gone = true
		return
	}
	e.end(Left)
}

// Begin begins a statement. It reports false if the session has ended.
func (e *Session) Begin() bool {
	e.server.mu.Lock()
	defer e.server.mu.Unlock()
	if !e.ended.IsZero() {
		return false
	}
	e.busy = true
	e.idle.Stop()
	return true
}

// Finish ends a statement, and the time begins that the session is idle. It reports false if the session has ended.
func (e *Session) Finish() bool {
	e.server.mu.Lock()
	defer e.server.mu.Unlock()
	if !e.ended.IsZero() {
		return false
	}
	if e.busy = false; e.gone {
		e.end(Left)
		return false
	}
	e.idle.Reset(e.ttl)
	return true
}

// SetTTL sets for how long the session may be idle.
func (e *Session) SetTTL(ttl time.Duration) {
	e.server.mu.Lock()
	defer e.server.mu.Unlock()
	e.ttl = ttl
}

// Take takes a key if nobody holds it or waits for it.
func (e *Session) Take(name string, shared bool) bool {
	e.server.mu.Lock()
	defer e.server.mu.Unlock()
	return e.ended.IsZero() && e.server.take(e, name, shared)
}

// Give gives a key back, and reports whether the session had it.
func (e *Session) Give(name string) bool {
	e.server.mu.Lock()
	defer e.server.mu.Unlock()
	return e.ended.IsZero() && e.server.give(e, name)
}

// Forget gives back all that the session holds.
func (e *Session) Forget() {
	e.server.mu.Lock()
	defer e.server.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(e.keys)) {
		for e.ended.IsZero() && e.server.give(e, name) {
		}
	}
}

// Wait waits in the queue of a key, and reports whether the session got it.
func (e *Session) Wait(name string, shared bool, most time.Duration) bool {
	s := e.server
	s.mu.Lock()
	if !e.ended.IsZero() || s.take(e, name, shared) {
		taken := e.ended.IsZero()
		s.mu.Unlock()
		return taken
	}
	r := &request{session: e, shared: shared, since: time.Now(), granted: make(chan struct{})}
	k := s.keys[name]
	k.queue = append(k.queue, r)
	e.waits = name
	s.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-r.granted:
	case <-timer.C:
	case <-e.over:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e.waits = ""
	if e.ended.IsZero() && e.keys[name] == 0 {
		s.leave(e, name)
	}
	return e.ended.IsZero() && e.keys[name] > 0
}
