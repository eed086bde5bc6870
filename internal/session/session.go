package session

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
)

// stopTimeout is how long a statement may go on after stop.
const stopTimeout = time.Second

// linger is how long a session waits for the next call before it starts to watch its
// connection: interrupting a watch costs more than a statement does.
const linger = 2 * time.Millisecond

// session is one dedicated connection, the goroutine that owns it, and the locks it holds.
type session[K comparable] struct {
	conn Conn[K]
	Config[K]
	bell   chan struct{}     // has room for one ring: there is something in the queue
	quit   chan struct{}     // closed by stop
	done   chan struct{}     // closed when the session has ended and every lock on it was told
	ended  func(*session[K]) // called after the connection was closed
	pinged time.Time         // the goroutine's own: when the last heartbeat was sent

	mu        sync.Mutex
	queue     []*call[K]         // guarded by mu: what the goroutine is to do next
	held      map[K]*lock[K]     // guarded by mu
	pending   int                // guarded by mu: calls whose callers are there
	interrupt context.CancelFunc // guarded by mu: ends the current watch
	stopped   bool               // guarded by mu: quit is closed
	hurry     *time.Timer        // guarded by mu: cuts the statement under way some time after stop
	err       error              // guarded by mu; does not change after done is closed
	trusted   time.Time          // guarded by mu: until when the server is sure to keep the session
	deadline  *time.Timer        // guarded by mu: ends the session at trusted, whatever it is doing

	patience context.Context //nolint:containedctx // the session's own: ends a statement under way long after stop
	giveUp   context.CancelFunc
}

// start begins the life of a session whose connection was opened with a last statement sent
// at the given time.
func start[K comparable](conn Conn[K], config Config[K], sent time.Time, ended func(*session[K])) *session[K] {
	s := &session[K]{
		conn:   conn,
		Config: config,
		bell:   make(chan struct{}, 1),
		quit:   make(chan struct{}),
		done:   make(chan struct{}),
		ended:  ended,
		pinged: sent,
		held:   make(map[K]*lock[K]),
	}
	patience, cancel := context.WithCancel(context.Background())
	s.patience = patience
	s.giveUp = func() { cancel(); conn.Cut() }
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trusted = config.Timing.trust(sent)
	s.deadline = time.AfterFunc(time.Until(s.trusted), s.expire)
	go s.run()
	return s
}

// stop asks the session to end: every lock on it is told ErrClosed, the connection is closed. A
// statement that is under way is given a moment.
func (s *session[K]) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.stopped = true
		close(s.quit)
		s.hurry = time.AfterFunc(stopTimeout, s.giveUp)
	}
	if s.interrupt != nil {
		s.interrupt()
	}
}

// run owns the connection until the session ends.
func (s *session[K]) run() {
	s.tell(s.serve())
	s.mu.Lock()
	s.deadline.Stop()
	if s.hurry != nil {
		s.hurry.Stop()
	}
	s.mu.Unlock()
	s.giveUp()
	s.conn.Close()
	s.ended(s)
}

// serve runs calls, and between them watches the connection and keeps the session alive. It
// returns why the session has to end.
func (s *session[K]) serve() error {
	idle := time.NewTimer(linger)
	defer idle.Stop()
	for {
		select {
		case <-s.quit:
			return sqllock.ErrClosed
		default:
		}
		if time.Since(s.pinged) >= s.Timing.Heartbeat { // also when there is always something to do
			if err := s.ping(); err != nil {
				return err
			}
		}
		if calls := s.next(); len(calls) > 0 {
			if err := s.answer(calls); err != nil {
				return err
			}
			if len(calls) > 1 {
				runtime.Gosched() // those who were answered have their next calls to make: one statement for them
			}
			continue
		}
		idle.Reset(linger)
		select {
		case <-s.bell:
			continue
		case <-s.quit:
			return sqllock.ErrClosed
		case <-s.done: // its deadline passed
			return s.err
		case <-idle.C:
		}
		if err := s.watch(); err != nil {
			return err
		}
	}
}
