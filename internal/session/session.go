package session

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/clock"
)

// stopTimeout is how long a statement under way may go on after stop.
const stopTimeout = time.Second

// session is one dedicated connection, the goroutine that owns it, and the locks it holds. While that goroutine is
// idle, a caller can borrow the connection for one statement.
type session[K comparable] struct {
	conn    Conn[K]
	resumer resumer[K] // conn, if it is one
	Config[K]
	bell    chan struct{}     // wakes next when something changed; has room for one ring
	done    chan struct{}     // closed when the session and every lock on it have ended
	ended   func(*session[K]) // called after the connection was closed
	pinged  time.Time         // when the last heartbeat was sent; written by the goroutine, not while it waits for the bell
	checked time.Time         // when the last confirmed heartbeat was sent; the goroutine's own
	taken   []*call[K]        // the goroutine's own: room for the result of take

	mu        sync.Mutex
	queue     []*call[K]         // guarded by mu: calls that the goroutine is to run next
	held      map[K]*lock[K]     // guarded by mu
	moving    int                // guarded by mu: keys that the session holds without a lock: being handed off or given back
	pending   int                // guarded by mu: calls that were not answered yet
	interrupt context.CancelFunc // guarded by mu: ends the current watch
	stopped   bool               // guarded by mu: stop was called
	waiting   time.Time          // guarded by mu: since when the goroutine waits for the bell; zero when it does not
	quiet     bool               // guarded by mu: it has waited so long that it should watch the connection
	lent      bool               // guarded by mu: a caller has borrowed the connection
	alone     bool               // guarded by mu: the latest calls came one at a time
	late      *batch[K]          // guarded by mu: a batch whose answer the borrower did not wait for
	lull      *time.Timer        // guarded by mu: sets quiet
	lulled    bool               // guarded by mu: lull is running
	hurry     *time.Timer        // guarded by mu: cuts off the statement under way some time after stop
	err       error              // guarded by mu; does not change after done is closed
	trusted   time.Time          // guarded by mu: until when the server is certain to keep the session
	deadline  *clock.Timer       // guarded by mu: ends the session at trusted, whatever it is doing

	waitContext context.Context //nolint:containedctx // the session's own: ends a statement under way long after stop
	giveUp      context.CancelFunc
}

// start begins the life of a session. The last statement of the connection's opening was sent at the given time.
func start[K comparable](conn Conn[K], config Config[K], sent time.Time, ended func(*session[K])) *session[K] {
	s := &session[K]{
		conn:    conn,
		Config:  config,
		bell:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		ended:   ended,
		pinged:  clock.Plain(sent),
		checked: clock.Plain(sent),
		held:    make(map[K]*lock[K]),
		alone:   true,
	}
	s.resumer, _ = conn.(resumer[K])
	patience, cancel := context.WithCancel(context.Background())
	s.waitContext = patience
	s.giveUp = func() { cancel(); conn.Cut() }
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trusted = config.Timing.trust(sent)
	s.deadline = clock.AfterFunc(s.trusted, s.expire)
	s.lull = time.AfterFunc(linger, s.hush)
	go s.live()
	return s
}

// stop asks the session to end: every lock on it ends with ErrClosed, and the connection is closed. A statement under
// way may go on for stopTimeout.
func (s *session[K]) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.stopped = true
		s.hurry = time.AfterFunc(stopTimeout, s.giveUp)
		s.ring()
	}
	if s.interrupt != nil {
		s.interrupt()
	}
}

// live owns the connection until the session ends.
func (s *session[K]) live() {
	s.end(s.serve())
	s.mu.Lock()
	s.deadline.Stop()
	s.lull.Stop()
	if s.hurry != nil {
		s.hurry.Stop()
	}
	s.mu.Unlock()
	s.giveUp()
	s.conn.Close()
	s.ended(s)
}

// serve runs calls. Between them it watches the connection and keeps the session alive. It returns why the session has
// to end.
func (s *session[K]) serve() error {
	for {
		b, err := s.next()
		if err != nil {
			return err
		}
		if b == nil {
			err = s.watch()
		} else {
			err = s.answer(b, s.run(b))
			clear(s.taken)
		}
		if err != nil {
			return err
		}
		if b != nil && len(b.calls) > 1 {
			runtime.Gosched() // lets the answered callers queue their next calls, for one statement
		}
		if time.Since(s.pinged) >= s.Timing.Heartbeat { // also when calls keep coming
			if err := s.ping(); err != nil {
				return err
			}
		}
	}
}
