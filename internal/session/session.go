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

// stopTimeout is how long a statement may go on after stop.
const stopTimeout = time.Second

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
	hurry     *time.Timer        // guarded by mu: calls giveUp some time after stop
	err       error              // guarded by mu; does not change after done is closed
	trusted   time.Time          // guarded by mu: until when the server is sure to keep the session
	deadline  *time.Timer        // guarded by mu: ends the session at trusted, whatever it is doing

	patience context.Context //nolint:containedctx // the session's own: ends a statement under way long after stop
	giveUp   context.CancelFunc
}

// heldLock is a lock on a session.
type heldLock struct {
	*hold.Hold
	over func() // gives up the turn of its key; only the first call counts
}

// call is work for the goroutine that owns the connection.
type call struct {
	work func(context.Context) error // an error ends the session
	keep func()                      // is run when the caller is given the outcome; may be nil
	undo func(context.Context) error // takes work back for a caller that has left; may be nil
	free bool                        // the session holds nothing: its trust begins anew
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
		conn:   conn,
		timing: timing,
		calls:  make(chan *call),
		quit:   make(chan struct{}),
		done:   make(chan struct{}),
		ended:  ended,
		held:   make(map[K]heldLock),
	}
	s.patience, s.giveUp = context.WithCancel(context.Background()) //nolint:gosec // run calls giveUp
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trusted = timing.trust(sent)
	s.deadline = time.AfterFunc(time.Until(s.trusted), s.expire)
	go s.run()
	return s
}

// do runs a call's work on the connection, with a context that ends when the session is no longer
// trusted. When ctx ends first, do returns its cause at once; work may then still run, and
// undo after it. An error of work ends the session, and is returned as an *endedError after
// every lock on the session was told.
func (s *session[K]) do(ctx context.Context, c *call) error {
	c.done = make(chan struct{})
	s.wake()
	select {
	case s.calls <- c:
		s.served()
	case <-s.done:
		s.served()
		return &endedError{s.err} // no longer changes
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
		idle.Reset(linger)
		select {
		case c := <-s.calls:
			if err := s.answer(c); err != nil {
				return err
			}
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

// answer runs one call and hands over its outcome, unless the caller has left: then the call
// is undone before anything else happens on the connection. What was taken is kept only when
// the caller has it: a lock that nobody has is not one to be told, and its key's turn is the
// caller's to give up.
func (s *session[K]) answer(c *call) error {
	defer close(c.done)
	err := s.confirm(c.free, c.work)
	if err != nil {
		s.tell(err)
		c.err = &endedError{err}
		return err
	}
	if c.left.CompareAndSwap(0, answered) {
		if c.keep != nil {
			c.keep()
		}
		return nil
	}
	if c.undo == nil {
		return nil
	}
	return s.confirm(false, c.undo)
}

// confirm runs work while the session is trusted and, when it succeeded, extends the trust. The
// clock is read again at the end: the process may have been stopped at any point. A session
// that is free promises nothing to anybody, and is trusted anew before its work.
func (s *session[K]) confirm(free bool, work func(context.Context) error) error {
	sent := time.Now()
	if free {
		s.trust(sent)
	}
	trusted := s.trustedUntil()
	if !sent.Before(trusted) {
		return s.timing.silence()
	}
	ctx, cancel := context.WithDeadline(s.patience, earlier(trusted, sent.Add(statementTimeout)))
	defer cancel()
	err := work(ctx)
	if s.patience.Err() != nil {
		return sqllock.ErrClosed
	}
	if ctx.Err() != nil {
		return s.timing.silence()
	}
	if err != nil {
		return err
	}
	s.trust(sent)
	if !time.Now().Before(s.trustedUntil()) {
		return s.timing.silence()
	}
	return nil
}

// trust extends the trust in the session after a statement sent at the given time.
func (s *session[K]) trust(sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trusted = s.timing.trust(sent)
	s.deadline.Reset(time.Until(s.trusted))
}

func (s *session[K]) trustedUntil() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trusted
}

// expire ends the session at its deadline: a driver that hangs cannot keep the news back.
func (s *session[K]) expire() {
	if !time.Now().Before(s.trustedUntil()) {
		s.tell(s.timing.silence())
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// watch waits until a caller comes, the connection dies or a heartbeat is due, and sends the
// heartbeat.
func (s *session[K]) watch() error {
	due := s.trustedUntil().Add(s.timing.Heartbeat + s.timing.margin() - s.timing.TTL)
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
	return s.confirm(false, s.conn.Ping)
}

// tell ends every lock of the session. Only the first call counts.
func (s *session[K]) tell(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = err
	for _, lock := range s.held {
		lock.End(s.lost())
		lock.over()
	}
	s.held = nil
	close(s.done)
}

// add records a lock that its caller was given; only the session's goroutine does.
func (s *session[K]) add(key K, lock heldLock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil { // ended at this very moment
		lock.End(s.lost())
		lock.over()
		return
	}
	s.held[key] = lock
}

// lost is the cause for locks of a session that has ended. The caller holds mu.
func (s *session[K]) lost() error {
	if errors.Is(s.err, sqllock.ErrClosed) {
		return s.err
	}
	return fmt.Errorf("%w: %w", sqllock.ErrLost, s.err)
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
