package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/hold"
)

// linger is how long a session waits for the next call before it starts to watch its
// connection: interrupting a watch costs more than a statement does.
const linger = 2 * time.Millisecond

// endedError says that the session ended before or while it ran a call. Whatever the call did
// on the server ends with the session.
type endedError struct{ err error }

func (e *endedError) Error() string { return "the session ended: " + e.err.Error() }
func (e *endedError) Unwrap() error { return e.err }

// Retryable implements the question of sqllock.IsRetryable.
func (e *endedError) Retryable() bool { return !errors.Is(e.err, sqllock.ErrClosed) }

// session is one dedicated connection, the goroutine that owns it, and the locks it holds.
type session[K comparable] struct {
	conn   Conn[K]
	timing Timing
	calls  chan *call
	quit   chan struct{}     // closed by stop
	done   chan struct{}     // closed when the session has ended and every lock on it was told
	ended  func(*session[K]) // called after the connection was closed

	mu        sync.Mutex
	held      map[K]heldLock     // guarded by mu
	callers   int                // guarded by mu: callers that want the connection now
	interrupt context.CancelFunc // guarded by mu: ends the current watch
	stopped   bool               // guarded by mu: quit is closed
	err       error              // written before done is closed

	trusted time.Time // owned by run: until when the server is sure to keep the session
}

// heldLock is a lock on a session.
type heldLock struct {
	*hold.Hold
	over func() // gives up the turn of its key; only the first call counts
}

// call is work for the goroutine that owns the connection.
type call struct {
	work func(context.Context) error // an error ends the session
	undo func(context.Context) error // takes work back for a caller that has left; may be nil
	left atomic.Int32                // who was first: the answer or the caller's leaving
	done chan struct{}               // closed when the call was answered
	err  error                       // written before done is closed; an *endedError or nil
}

const (
	answered = 1
	deserted = 2
)

// start begins the life of a session whose connection was opened with a last statement sent
// at the given time.
func start[K comparable](conn Conn[K], timing Timing, sent time.Time, ended func(*session[K])) *session[K] {
	s := &session[K]{
		conn:    conn,
		timing:  timing,
		calls:   make(chan *call),
		quit:    make(chan struct{}),
		done:    make(chan struct{}),
		ended:   ended,
		held:    make(map[K]heldLock),
		trusted: timing.trust(sent),
	}
	go s.run()
	return s
}

// do runs work on the connection, with a context that ends when the session is no longer
// trusted. When ctx ends first, do returns its cause at once; work may then still run, and
// undo after it. An error of work ends the session, and is returned as an *endedError after
// every lock on the session was told.
func (s *session[K]) do(ctx context.Context, work, undo func(context.Context) error) error {
	c := &call{work: work, undo: undo, done: make(chan struct{})}
	s.wake()
	select {
	case s.calls <- c:
		s.served()
	case <-s.done:
		s.served()
		return &endedError{s.err}
	case <-ctx.Done():
		s.served()
		return context.Cause(ctx)
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		if c.left.CompareAndSwap(0, deserted) {
			return context.Cause(ctx)
		}
		<-c.done
		return c.err
	}
}

// wake announces a caller and interrupts a watch.
func (s *session[K]) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callers++
	if s.interrupt != nil {
		s.interrupt()
	}
}

func (s *session[K]) served() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callers--
}

// stop asks the session to end: every lock on it is told ErrClosed, the connection is closed.
func (s *session[K]) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.stopped = true
		close(s.quit)
	}
	if s.interrupt != nil {
		s.interrupt()
	}
}

// run owns the connection until the session ends.
func (s *session[K]) run() {
	s.tell(s.serve())
	s.conn.Close()
	s.ended(s)
}

// serve runs calls, and between them watches the connection and keeps the session alive. It
// returns why the session has to end.
func (s *session[K]) serve() error {
	idle := time.NewTimer(linger)
	defer idle.Stop()
	for {
		idle.Reset(linger)
		select {
		case c := <-s.calls:
			if err := s.answer(c); err != nil {
				return err
			}
			continue
		case <-s.quit:
			return sqllock.ErrClosed
		case <-idle.C:
		}
		if err := s.watch(); err != nil {
			return err
		}
	}
}

// answer runs one call and hands over its outcome, unless the caller has left: then the call
// is undone before anything else happens on the connection.
func (s *session[K]) answer(c *call) error {
	defer close(c.done)
	err := s.confirm(c.work)
	if err != nil {
		s.tell(err)
		c.err = &endedError{err}
	}
	if c.left.CompareAndSwap(0, answered) || err != nil || c.undo == nil {
		return err
	}
	return s.confirm(c.undo)
}

// confirm runs work while the session is trusted and, when it succeeded, extends the trust.
// The clock is read again at the end: the process may have been stopped at any point.
func (s *session[K]) confirm(work func(context.Context) error) error {
	sent := time.Now()
	if !sent.Before(s.trusted) {
		return s.timing.silence(sent.Sub(s.trusted))
	}
	ctx, cancel := context.WithDeadline(context.Background(), s.trusted)
	defer cancel()
	if err := work(ctx); err != nil {
		return err
	}
	s.trusted = s.timing.trust(sent)
	if now := time.Now(); !now.Before(s.trusted) {
		return s.timing.silence(now.Sub(s.trusted))
	}
	return nil
}

// watch waits until a caller comes, the connection dies or a heartbeat is due, and sends the
// heartbeat.
func (s *session[K]) watch() error {
	due := s.trusted.Add(s.timing.Heartbeat + s.timing.margin() - s.timing.TTL)
	ctx, cancel := context.WithDeadline(context.Background(), due)
	defer cancel()

	s.mu.Lock()
	if s.callers > 0 || s.stopped {
		s.mu.Unlock()
		return nil
	}
	s.interrupt = cancel
	s.mu.Unlock()

	err := s.conn.Watch(ctx)

	s.mu.Lock()
	s.interrupt = nil
	s.mu.Unlock()
	if err != nil || time.Now().Before(due) {
		return err
	}
	return s.confirm(s.conn.Ping)
}

// tell ends every lock of the session. Only the first call counts.
func (s *session[K]) tell(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = err
	cause := err
	if !errors.Is(err, sqllock.ErrClosed) {
		cause = fmt.Errorf("%w: %w", sqllock.ErrLost, err)
	}
	for _, lock := range s.held {
		lock.End(cause)
		lock.over()
	}
	s.held = nil
	close(s.done)
}

// add records a lock that was granted on the session; only the session's goroutine does.
func (s *session[K]) add(key K, lock heldLock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[key] = lock
}

// remove forgets a lock that was given back; only the session's goroutine does.
func (s *session[K]) remove(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, key)
}

// holds reports whether the session holds key.
func (s *session[K]) holds(key K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, held := s.held[key]
	return held
}

// hasEnded reports whether the session has ended.
func (s *session[K]) hasEnded() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
