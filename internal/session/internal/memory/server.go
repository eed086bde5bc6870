package memory

import (
	"slices"
	"sync"
	"time"
)

// Server has sessions and keys.
type Server struct {
	mu       sync.Mutex
	sessions map[*Session]struct{} // guarded by mu: those that live
	keys     map[string]*key       // guarded by mu
	last     int64                 // guarded by mu: the id of the newest session
	frozen   time.Time             // guarded by mu: until then the server does nothing
	changed  func(Change)          // called with mu locked
}

// Change is something that happened to a key or a session.
type Change struct {
	What    What
	Session *Session
	Key     string // not for Ended
	Reason  Reason // for Ended
}

// What is a kind of Change.
type What int

// Kinds of changes. A session that ends loses its keys without further changes.
const (
	Granted   What = iota // the session has the key
	Again                 // the session had the key, and has it twice now
	GivenBack             // the session gave the key back
	Ended                 // the session has ended, before anybody else gets its keys
)

// Reason is why a session has ended.
type Reason int

// Reasons.
const (
	Idle    Reason = iota // it was idle for its TTL
	Left                  // its client closed the connection
	Broken                // the connection broke
	Killed                // somebody ended it
	Restart               // the server restarted
)

// Excused reports whether a client may hear of the end after others have got the keys: the server did not wait for the
// TTL, nor did the client close the session.
func (r Reason) Excused() bool { return r >= Broken }

func (r Reason) String() string {
	return [...]string{"idle for its TTL", "closed by its client", "connection broken", "killed", "server restarted"}[r]
}

// NewServer returns a server that calls changed for each change. changed must not call the server.
func NewServer(changed func(Change)) *Server {
	return &Server{sessions: make(map[*Session]struct{}), keys: make(map[string]*key), changed: changed}
}

// Locked calls f while nothing changes. f must not call the server.
func (s *Server) Locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Open opens a session for a Locker of a client. The server ends it when it was idle for the TTL.
func (s *Server) Open(client int, locker any, ttl time.Duration) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	e := &Session{ID: s.last, Client: client, Locker: locker, server: s, ttl: ttl, over: make(chan struct{}), keys: make(map[string]int)}
	s.sessions[e] = struct{}{}
	e.idle = time.AfterFunc(ttl, e.timeout)
	return e
}

// Restart ends every session.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.byID() {
		e.end(Restart)
	}
}

// Kill ends a session, if it holds key.
func (s *Server) Kill(id int64, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.sessions {
		if e.ID == id && e.keys[key] > 0 {
			e.end(Killed)
			return true
		}
	}
	return false
}

// Freeze has the server do nothing for some time.
func (s *Server) Freeze(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := time.Now().Add(d); until.After(s.frozen) {
		s.frozen = until
	}
}

// Frozen returns for how long the server does nothing yet.
func (s *Server) Frozen() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.frozen)
}

// Holder returns a session that holds a key, or nil, and the number of requests in the queue.
func (s *Server) Holder(name string) (holder *Session, waiters int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[name]
	if k == nil {
		return nil, 0
	}
	if len(k.owners) > 0 {
		holder = k.owners[0]
	}
	return holder, len(k.queue)
}

// Held is a key that a session holds or waits for.
type Held struct {
	Key     string
	Session *Session
	Waits   bool
}

// Held returns every key that a session holds or waits for. The caller has locked the server.
func (s *Server) Held() (all []Held) {
	for name, k := range s.keys {
		for _, e := range k.owners {
			all = append(all, Held{name, e, false})
		}
		for _, r := range k.queue {
			all = append(all, Held{name, r.session, true})
		}
	}
	return all
}

// FreeSince returns since when nobody has held a key, and whether nobody does. The caller has locked the server.
func (s *Server) FreeSince(name string) (time.Time, bool) {
	k := s.keys[name]
	if k == nil {
		return time.Time{}, true
	}
	return k.freed, len(k.owners) == 0
}

// Sessions returns the number of sessions that live.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// byID returns the sessions, the oldest first. The caller holds mu.
func (s *Server) byID() []*Session {
	all := make([]*Session, 0, len(s.sessions))
	for e := range s.sessions {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *Session) int { return int(a.ID - b.ID) })
	return all
}
