package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/hold"
)

// lock is a lock on a session, or one that may still be granted.
type lock[K comparable] struct {
	*hold.Hold
	want       Want[K]
	s          *session[K]
	leaveQueue func(K) // leaves the wait queue of the key

	since  time.Time // when the server granted the key to this process
	passes int       // the number of handoffs since
}

// end ends every lock of the session, and every call that is queued on it. Only the first end of a session counts.
func (s *session[K]) end(err error) {
	locks, first := s.markEnded(err)
	if !first {
		return
	}
	level := slog.LevelWarn
	if errors.Is(err, sqllock.ErrClosed) || errors.Is(err, errCut) {
		level = slog.LevelDebug
	}
	s.Events.Log(context.Background(), level, "lock session ended", slog.Int("locks", locks), slog.Any("err", err))
}

func (s *session[K]) markEnded(err error) (locks int, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, false
	}
	s.err = err
	locks = len(s.held)
	for _, lock := range s.held {
		lock.End(s.lost())
		lock.leaveQueue(lock.want.Key)
	}
	s.held = nil
	close(s.done) // before the calls are answered: their callers look for another session
	for _, c := range s.queue {
		c.err = &endedError{err}
		close(c.done)
	}
	s.queue = nil
	s.ring()
	return locks, true
}

// keep records a lock. If the session has ended, the lock ends as well. The caller holds mu.
func (s *session[K]) keep(lock *lock[K]) {
	if s.err != nil {
		lock.End(s.lost())
		lock.leaveQueue(lock.want.Key)
		return
	}
	s.held[lock.want.Key] = lock
}

// attach records a lock that was handed off, unless the session has ended.
func (s *session[K]) attach(lock *lock[K]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	s.moving--
	s.held[lock.want.Key] = lock
	return true
}

// detach removes a lock that is to be given back or handed off, and reports whether it was there. If so, the caller
// leaves the key's wait queue; otherwise the end of the session did that.
func (s *session[K]) detach(lock *lock[K]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[lock.want.Key] != lock {
		return false
	}
	s.moving++
	delete(s.held, lock.want.Key)
	return true
}

// load returns the number of locks on the session and of pending calls.
func (s *session[K]) load() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held) + s.pending
}

// locks returns the number of locks on the session.
func (s *session[K]) locks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

// holds reports whether key is held on the session.
func (s *session[K]) holds(key K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, held := s.held[key]
	return held
}

// lost returns the cause for the locks of a session that has ended.
func (s *session[K]) lost() error {
	if errors.Is(s.err, sqllock.ErrClosed) {
		return s.err
	}
	return fmt.Errorf("%w: %w", sqllock.ErrLost, s.err)
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
