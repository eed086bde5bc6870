package memory

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// Server is a database server. Its clients are Stores, and transactions of the application.
type Server struct {
	kind Kind

	mu       sync.Mutex
	tables                       // guarded by mu
	rowLocks map[rowKey]*rowLock // guarded by mu
	open     map[*Tx]struct{}    // guarded by mu: transactions, and statements, that have not ended
	waits    int                 // guarded by mu: how many of them wait for a row
	log      []commit            // guarded by mu: the newest commits, which a failover can forget
	version  int64               // guarded by mu: counts commits
	offset   time.Duration       // guarded by mu: what the server's clock is ahead of the real one
	sessions map[*turn]struct{}  // guarded by mu: those for turns
	turns    map[string][]*turn  // guarded by mu: who stands for the turn of each name; the first one has it
	watch    func(Change)        // guarded by mu
	epoch    int64               // guarded by mu: counts restarts
}

// NewServer returns a server without rows.
func NewServer(k Kind) *Server {
	return &Server{
		kind:     k,
		tables:   newTables(),
		rowLocks: make(map[rowKey]*rowLock),
		open:     make(map[*Tx]struct{}),
		sessions: make(map[*turn]struct{}),
		turns:    make(map[string][]*turn),
	}
}

// now is the time by the server's clock, in microseconds. The caller holds mu.
func (s *Server) now() int64 { return time.Now().Add(s.offset).UnixMicro() }

// SetClock moves the server's clock by d.
func (s *Server) SetClock(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += d
}

// errRestarted ends the statements and transactions of a server that restarts.
var errRestarted = dberr.Classify(errors.New("the server has ended the connection"))

// errConflict is the error of a statement that was undone because of other transactions.
var errConflict error = &dberr.Error{Err: errors.New("undone because of another transaction"), OutcomeKnown: true, Transient: true}

// Restart ends all statements, transactions and connections. The server forgets the newest commits if they did not wait
// for the disk (crash).
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := len(s.log)
	for keep > 0 && s.log[keep-1].async {
		keep--
	}
	s.restart(keep)
}

// Failover restarts the server and forgets what was committed within the time d before.
func (s *Server) Failover(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := time.Now().Add(-d)
	keep := len(s.log)
	for keep > 0 && s.log[keep-1].at.After(since) {
		keep--
	}
	s.restart(keep)
}

// restart ends everything that is under way, and undoes the commits after the first keep ones. The caller holds mu.
func (s *Server) restart(keep int) {
	s.epoch++
	for t := range s.open {
		t.dead = true
		if t.waiting != nil {
			t.waiting.stop()
		}
	}
	clear(s.open)
	clear(s.rowLocks)
	for t := range s.sessions {
		t.end()
	}
	for _, c := range slices.Backward(s.log[keep:]) {
		for _, undo := range slices.Backward(c.undo) {
			undo()
		}
	}
	s.log = s.log[:keep]
}

// Change is one change of a name's row, or of the application's data, as it is committed.
type Change struct {
	Name          string
	Before, After int64  // the token or, of data, the number
	Lease         string // the lease that holds the name
	Permits       int    // how many permits it has
	Limit         int64  // the smallest limit of its permits; 0: none has one
	Granted       bool   // a lease acquired the name, or a permit of it
	Bumped        bool   // the token of a name was bumped that a lease holds, which lives
	Freed         bool   // the name was released
	Data          bool   // the change is one of data
	Held          bool   // of data: After is the token of a name, or of a permit, that is held
	Both          bool   // the row has a lease and permits at the same time
}

// Watch has f called with each change as it is committed, while the server is locked.
func (s *Server) Watch(f func(Change)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = f
}

// Waiting returns how many statements and transactions wait for a row.
func (s *Server) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits
}

// Busy reports whether a transaction has locked a row.
func (s *Server) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rowLocks) > 0
}

// Leases returns how many lease rows there are, and how many of them have not expired.
func (s *Server) Leases() (all, live int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.leases {
		if l.expires > s.now() {
			live++
		}
	}
	return len(s.leases), live
}

// Lasts returns for how long the lease lives that holds a name, or a permit of it, with the token, or with several of which
// it is one. It reports false if none
// does.
func (s *Server) Lasts(name string, token int64) (d time.Duration, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease := ""
	if r := s.locks[name]; r.granted(token) {
		lease = r.lease
	}
	if p, there := s.permits[permitKey{name, token}]; there {
		lease = p.lease
	}
	l, live := s.leases[lease]
	if !live {
		return 0, lease != ""
	}
	return time.Duration(l.expires-s.now()) * time.Microsecond, true
}
