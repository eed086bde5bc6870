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

// lock is a lock on a session, or one that may come to be.
type lock[K comparable] struct {
	*hold.Hold
	want Want[K]
	s    *session[K]
	leaveQueue func(K) // gives up the turn of the key

	since  time.Time // when the server granted the key to this process
	passes int       // how often it was handed over since
}

// tell ends every lock of the session, and every call that waits for it. Only the first call
// counts.
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
	close(s.done) // first: those who are told next look for another session
	for _, c := range s.queue {
		c.err = &endedError{err}
		close(c.done)
	}
	s.queue = nil
	s.ring()
	return locks, true
}

// keep records a lock. When the session has ended the lock has ended with it. The caller has mu.
func (s *session[K]) keep(lock *lock[K]) {
	if s.err != nil {
		lock.End(s.lost())
		lock.leaveQueue(lock.want.Key)
		return
	}
	s.held[lock.want.Key] = lock
}

// attach records a lock that was handed over, unless the session has ended.
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

// detach forgets a lock, which is to be given back or handed over, and reports whether it was there:
// then its key's turn is for the caller to give up, and otherwise it was given up when the session
// ended.
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

// load is the number of locks on the session, and of those that are asked for.
func (s *session[K]) load() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held) + s.pending
}

// locks is the number of locks on the session.
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

// lost is the cause for locks of a session that has ended.
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
