package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/clock"
)

// stopTimeout is how long a statement under way may go on after stop.
const stopTimeout = time.Second

// session is one connection of a Locker's own, the goroutine that owns it, and the locks it holds. While that goroutine
// is idle, a caller can borrow the connection for one statement.
type session[K comparable] struct {
	state[K]
	conn      Conn[K]
	resumer   resumer[K]        // conn, if it is one
	keeper    keeper[K]         // conn, if it is one, and keeps
	dedicated bool              // it is for waits, and holds one lock at most
	ended     func(*session[K]) // called after the connection was closed
	pinged    time.Time         // when the last heartbeat was sent, or a slice of a wait was over; see checked
	checked   time.Time         // when the last confirmed one was sent; both are the goroutine's, pinged not while it waits for the bell

	waitContext context.Context //nolint:containedctx // the session's own: ends a statement under way long after stop
	giveUp      context.CancelFunc
}

// start begins the life of a session. The last statement of the connection's opening was sent at the given time.
func start[K comparable](conn Conn[K], config Config[K], dedicated bool, sent time.Time, ended func(*session[K])) *session[K] {
	s := &session[K]{
		state: state[K]{
			Config: config,
			trust:  trust{timing: config.Timing},
			bell:   make(chan struct{}, 1),
			done:   make(chan struct{}),
			held:   make(map[K]*lock[K]),
			alone:  true,
			used:   time.Now(),
		},
		conn:      conn,
		dedicated: dedicated,
		ended:     ended,
		pinged:    clock.Plain(sent),
		checked:   clock.Plain(sent),
	}
	s.resumer, _ = conn.(resumer[K])
	if k, ok := conn.(keeper[K]); ok && k.Keeps() {
		s.keeper = k
	}
	var cancel context.CancelFunc
	s.waitContext, cancel = context.WithCancel(context.Background())
	s.giveUp = func() { cancel(); conn.Cut() }
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trusted = config.Timing.trust(sent)
	s.deadline = clock.AfterFunc(s.trusted, s.expire)
	s.watchTimer = time.AfterFunc(watchAfter, s.dueToWatch)
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
		s.stopTimer = time.AfterFunc(stopTimeout, s.giveUp)
	}
	s.wake()
}

// live owns the connection until the session ends (I42), also if a driver ends the goroutine.
func (s *session[K]) live() {
	defer s.ended(s)
	defer s.conn.Close()
	defer s.giveUp()
	err := errUnreturned
	defer func() {
		s.end(err)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stopped = true // stop has nothing to cut off any more
		s.deadline.Stop()
		s.watchTimer.Stop()
		if s.stopTimer != nil {
			s.stopTimer.Stop()
		}
	}()
	err = s.serve()
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
			err = heartbeat[K]{s}.keepAndWatch()
		} else {
			err = s.runHere(b)
			clear(s.taken)
		}
		if err != nil {
			return err
		}
		if b != nil && len(b.calls) > 1 {
			runtime.Gosched() // lets the answered callers queue their next calls, for one statement
		}
		if time.Since(s.pinged) >= s.Timing.Heartbeat { // also when calls keep coming
			if err := (heartbeat[K]{s}).ping(); err != nil {
				return err
			}
		}
	}
}

// runHere runs a batch in the session's goroutine, and answers its calls.
func (s *session[K]) runHere(b *batch[K]) error {
	returned := false
	defer func() {
		if !returned {
			_ = s.answer(b, errUnreturned) // which ends the session
		}
	}()
	err := s.run(b)
	returned = true
	return s.answer(b, err)
}

// end ends the session and every lock on it, before its connection is closed (I1, I42), and every call that is queued on
// it. Only the first end of a session counts.
func (s *state[K]) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.fail(err)
	}
}

// logEnd logs why the session has ended. No caller waits for that, only Close: a log handler may block.
func (s *state[K]) logEnd() {
	level := slog.LevelWarn
	switch {
	case errors.Is(s.err, errUnused):
		return
	case errors.Is(s.err, sqllock.ErrClosed), errors.Is(s.err, errCut), s.ending == 0: // nobody has lost anything
		level = slog.LevelDebug
	}
	s.Events.Log(context.Background(), level, "lock session ended", slog.Int("locks", s.ending), slog.Any("err", s.err))
}

// endUnused ends a shared session that holds nothing and has done nothing for parkTime, so that an idle Locker costs no
// connection, and a long wait only the one that waits. It reports whether it did. A caller that was about to use
// the session looks for another one.
func (s *session[K]) endUnused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dedicated || s.err != nil || s.lent || len(s.held)+s.moving+s.pending > 0 || time.Since(s.used) < parkTime {
		return false
	}
	s.fail(errUnused)
	return true
}

// errUnused is the error of a session that ended because nobody needed it.
var errUnused = errors.New("the session is not in use")

// fail ends the session and every lock on it. The caller holds mu.
func (s *state[K]) fail(err error) {
	s.err, s.lost, s.ending = err, err, len(s.held)
	if !errors.Is(err, sqllock.ErrClosed) {
		s.lost = fmt.Errorf("%w: %w", sqllock.ErrLost, err)
	}
	for _, lock := range s.held {
		lock.End(s.lost)
		lock.l.queue.Done(lock.want.Key)
	}
	s.held = nil
	close(s.done) // before the calls are answered: their callers look for another session
	for _, c := range s.queue {
		c.err = &endedError{err}
		close(c.done)
	}
	s.queue = nil
	s.wake()
}
