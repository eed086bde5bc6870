package session

import (
	"context"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/clock"
)

// trust says until when the server is certain to keep a session. Its mutex guards the whole state of the session.
type trust struct {
	timing Timing // as in the Config

	mu       sync.Mutex
	err      error        // guarded by mu: why the session has ended; does not change after its done is closed
	trusted  time.Time    // guarded by mu: until when the server is certain to keep the session
	brief    bool         // guarded by mu: the server keeps it as one that waits
	deadline *clock.Timer // guarded by mu: ends the session at trusted, whatever it is doing
}

// confirm runs work while the session is trusted and extends the trust if work succeeds. It reads the clock again at
// the end: the process may have been stopped at any point. A free session holds nothing that could be lost, so it is
// trusted anew before its work.
func (s *session[K]) confirm(free bool, work func(until time.Time) error) error {
	sent := clock.Now()
	if free {
		s.setBrief(false) // what this did not end, the work begins anew
		s.extendTrust(sent)
	}
	until, err := s.limit(sent)
	if err != nil {
		return err
	}
	return s.confirmed(sent, until, work(clock.Plain(until)))
}

// limit returns until when a statement that is sent at the given time may run.
func (t *trust) limit(sent time.Time) (until time.Time, err error) {
	trusted := t.trustedUntil()
	if !sent.Before(trusted) {
		return until, t.silence()
	}
	return earlier(trusted, sent.Add(statementTimeout)), nil
}

// confirmed is the rest of confirm, for work that was sent at the given time and has ended with err (I3, I4, I42).
func (s *session[K]) confirmed(sent, until time.Time, err error) error {
	if s.waitContext.Err() != nil {
		return sqllock.ErrClosed
	}
	if err != nil {
		if !clock.Now().Before(until) {
			return s.silence()
		}
		return err
	}
	s.extendTrust(sent)
	if !s.isTrusted() {
		return s.silence()
	}
	return nil
}

// work is confirm for a function that takes a context.
func (s *session[K]) work(free bool, f func(context.Context) error) error {
	return s.confirm(free, func(until time.Time) error {
		ctx, cancel := context.WithDeadline(s.waitContext, until)
		defer cancel()
		return f(ctx)
	})
}

// extendTrust extends the trust in the session after a statement sent at the given time.
func (t *trust) extendTrust(sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	timing := t.timing
	if t.brief {
		timing = t.timing.whileWaiting()
	}
	t.trusted = timing.trust(sent)
	if t.brief && t.err == nil {
		t.deadline.Reset(t.trusted) // it may be set to a later time
	}
}

// silence is the cause of the end of a session that has not been confirmed in time.
func (t *trust) silence() error {
	if t.isBrief() {
		return t.timing.whileWaiting().silence()
	}
	return t.timing.silence()
}

// remaining returns how long the server is certain to keep the session without another answer, and whether it holds a
// lock.
func (s *state[K]) remaining() (left time.Duration, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := s.trusted
	if s.brief { // Keep is on its way: that it is missing is no stall
		until = until.Add(s.Timing.trust(until).Sub(s.Timing.whileWaiting().trust(until)))
	}
	return max(0, clock.Until(until)), len(s.held) > 0
}

func (t *trust) trustedUntil() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.trusted
}

// isTrusted reports whether the server is sure to keep the session at this moment (I5).
func (t *trust) isTrusted() bool { return clock.Now().Before(t.trustedUntil()) }

// expire ends the session at its deadline, even while a driver hangs. The timer is reset here, not by every statement.
func (s *state[K]) expire() {
	if !s.isTrusted() {
		s.end(s.silence())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.deadline.Reset(s.trusted)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
