package session

import (
	"context"
	"time"
)

// state is what the goroutine of a session shares with its callers. Its methods never use the connection.
type state[K comparable] struct {
	Config[K]
	trust               // has mu
	bell  chan struct{} // wakes next when something changed; has room for one ring
	done  chan struct{} // closed when the session and every lock on it have ended
	taken []*call[K]    // the goroutine's own: room for the result of take

	queue      []*call[K]         // guarded by mu: calls that the goroutine is to run next
	held       map[K]*lock[K]     // guarded by mu
	moving     int                // guarded by mu: keys that the session holds without a lock: being handed off or given back
	pending    int                // guarded by mu: calls that were not answered yet
	used       time.Time          // guarded by mu: when a call last came
	interrupt  context.CancelFunc // guarded by mu: ends the current watch
	stopped    bool               // guarded by mu: stop was called
	waiting    time.Time          // guarded by mu: since when the goroutine waits for the bell; zero when it does not
	watchDue   bool               // guarded by mu: it has waited so long that it should watch the connection
	lent       bool               // guarded by mu: a caller has borrowed the connection
	alone      bool               // guarded by mu: the latest calls came one at a time
	unfinished *batch[K]          // guarded by mu: what the borrower left to the goroutine
	watchTimer *time.Timer        // guarded by mu: sets watchDue
	watchTimed bool               // guarded by mu: watchTimer is running
	stopTimer  *time.Timer        // guarded by mu: cuts off the statement under way some time after stop
	lost       error              // guarded by mu, as err: the cause for the locks of a session that has ended
	ending     int                // guarded by mu, as err: the number of those locks
}

// attach records a lock that was handed off, unless the session has ended (I45).
func (s *state[K]) attach(lock *lock[K]) bool {
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
func (s *state[K]) detach(lock *lock[K]) bool {
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
func (s *state[K]) load() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held) + s.pending
}

// hasRoom reports whether the session has room for a lock if none of the pending calls takes a key.
func (s *state[K]) hasRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)+s.moving < s.Limits.Locks
}

// locks returns the number of locks on the session.
func (s *state[K]) locks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

// holds reports whether key is held on the session.
func (s *state[K]) holds(key K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, held := s.held[key]
	return held
}

// hasEnded reports whether the session has ended.
func (s *state[K]) hasEnded() bool { return isClosed(s.done) }

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
