package session

import (
	"errors"
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/hold"
)

// heldLock is a lock on a session.
type heldLock struct {
	*hold.Hold
	over func() // gives up the turn of its key; only the first call counts
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
